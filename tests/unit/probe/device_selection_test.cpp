// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "probe/device_selection.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "probe/pci_address.hpp"
#include "test_box.hpp"

namespace artune {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

Topology box() { return *TestBox().collect(); }

Error refusal(const std::vector<std::string>& items, const Topology& topology) {
  const auto selected = select_devices(items, topology);
  EXPECT_FALSE(selected);
  return selected ? Error{} : selected.error();
}

TEST(SelectDevices, KeepsTheOrder) {
  EXPECT_THAT(*select_devices({"2,0", "3"}, box()), ElementsAre(2, 0, 3));
  EXPECT_THAT(*select_devices({}, box()), ElementsAre(0, 1, 2, 3));
}

TEST(SelectDevices, TakesAddressesAndUuidsInAnyUsualSpelling) {
  EXPECT_THAT(*select_devices({"83:00.0", "00000000:04:00.0", "0000:03:00"}, box()), ElementsAre(2, 1, 0));
  EXPECT_THAT(*select_devices({uuid_of_box_gpu(3), "GPU-BBBB"}, box()), ElementsAre(3, 1));
}

TEST(SelectDevices, UnknownWordsAreNamedWithWhatExists) {
  for (const std::string word : {"7", "0000:05:00.0", "GPU-zzzz", "first", "", "-1", "1.5"}) {
    const Error error = refusal({word}, box());
    EXPECT_EQ(error.reason, Reason::usage);
    EXPECT_THAT(error.message, AllOf(HasSubstr("'" + word + "'"), HasSubstr("2 = 0000:83:00.0 NVIDIA RTX PRO 6000")));
  }
  EXPECT_THAT(refusal({"0,"}, box()).message, HasSubstr("''"));
}

TEST(SelectDevices, ABeginningThatFitsSeveralIsRefused) { EXPECT_THAT(refusal({"GPU-"}, box()).message, HasSubstr("several")); }

TEST(SelectDevices, OneGpuTwiceNeedsRanksPerGpu) {
  EXPECT_THAT(refusal({"0,1,03:00.0"}, box()).message,
              AllOf(HasSubstr("'03:00.0'"), HasSubstr("GPU 0 a second time"), HasSubstr("--ranks-per-gpu")));
}

TEST(SelectDevices, HiddenGpusAreNotSelected) {
  Topology topology = box();
  topology.gpus[1].cuda_ordinal.reset();
  EXPECT_THAT(*select_devices({}, topology), ElementsAre(0, 2, 3));
  const Error error = refusal({"1"}, topology);
  EXPECT_EQ(error.reason, Reason::no_usable_gpu);
  EXPECT_THAT(error.message, HasSubstr("CUDA_VISIBLE_DEVICES"));
}

TEST(SelectDevices, ADocumentKnowsUuidsOnlyByTheirHash) {
  Topology topology = *topology_from_json(topology_to_json(box()), "probe");
  EXPECT_THAT(*select_devices({uuid_of_box_gpu(2)}, topology), ElementsAre(2));
  EXPECT_EQ(refusal({"GPU-cccc"}, topology).reason, Reason::usage);
}

TEST(PciAddress, NormalizesSpellings) {
  EXPECT_EQ(normalize_pci_address("0000:01:00.0"), "0000:01:00.0");
  EXPECT_EQ(normalize_pci_address("00000000:0A:00.0"), "0000:0a:00.0");
  EXPECT_EQ(normalize_pci_address("a:0.1"), "0000:0a:00.1");
  EXPECT_EQ(normalize_pci_address("a:1f"), "0000:0a:1f.0");
  EXPECT_EQ(normalize_pci_address("00010001:0b:00.0"), "10001:0b:00.0");
  for (const char* none : {"", "0", "1.0", ":", "1:2:3:4", "100:0.0", "1:20.0", "1:0.8", "g:0.0", "1:0.", "-1:0.0", "1:0.0 "}) {
    EXPECT_EQ(normalize_pci_address(none), std::nullopt) << none;
  }
}

}  // namespace
}  // namespace artune
