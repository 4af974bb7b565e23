// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "seams/nccl_library.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <filesystem>

namespace artune {
namespace {

using testing::HasSubstr;

TEST(NcclLibrary, LoadsTheNamedFile) {
  const Result<NcclLibrary> nccl = NcclLibrary::open(FAKE_NCCL, "/nowhere.so");
  ASSERT_TRUE(nccl) << nccl.error().message;
  EXPECT_EQ(nccl->version(), 23007);
  EXPECT_EQ(nccl->version_text(), "2.30.7");
  EXPECT_EQ(nccl->file(), std::filesystem::canonical(FAKE_NCCL).string());
  EXPECT_NE(nccl->symbol("ncclGetVersion"), nullptr);
  EXPECT_EQ(nccl->symbol("ncclNoSuchCall"), nullptr);
}

TEST(NcclLibrary, FileIsTheRealOneBehindASymbolicLink) {
  const auto link = std::filesystem::temp_directory_path() / ("artune-nccl-link-" + std::to_string(::getpid()));
  std::filesystem::create_symlink(FAKE_NCCL, link);
  const Result<NcclLibrary> nccl = NcclLibrary::open(link.string(), "");
  std::filesystem::remove(link);
  ASSERT_TRUE(nccl);
  EXPECT_EQ(nccl->file(), std::filesystem::canonical(FAKE_NCCL).string());
}

TEST(NcclLibrary, EnvironmentAndSearchAreTheSecondAndThirdChoice) {
  EXPECT_TRUE(NcclLibrary::open("", FAKE_NCCL, "libnowhere.so.2"));
  EXPECT_TRUE(NcclLibrary::open("", "", FAKE_NCCL));
}

TEST(NcclLibrary, SaysWhichFileAndWhoChoseIt) {
  const Result<NcclLibrary> option = NcclLibrary::open("/nowhere/libnccl.so", FAKE_NCCL);
  ASSERT_FALSE(option);
  EXPECT_EQ(option.error().reason, Reason::unavailable);
  EXPECT_THAT(option.error().message, testing::AllOf(HasSubstr("/nowhere/libnccl.so"), HasSubstr("--nccl")));
  const Result<NcclLibrary> environment = NcclLibrary::open("", "/nowhere/libnccl.so");
  ASSERT_FALSE(environment);
  EXPECT_THAT(environment.error().message, HasSubstr("from ARTUNE_NCCL_LIB"));
  const Result<NcclLibrary> search = NcclLibrary::open("", "", "libartune-nowhere.so.2");
  ASSERT_FALSE(search);
  EXPECT_THAT(search.error().message, testing::AllOf(HasSubstr("libartune-nowhere.so.2"), HasSubstr("--nccl FILE")));
}

TEST(NcclLibrary, RefusesWhatIsNoNccl) {
  const Result<NcclLibrary> other = NcclLibrary::open("libm.so.6", "");
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("ncclGetVersion"));
  const Result<NcclLibrary> failing = NcclLibrary::open(FAKE_NCCL_FAILING, "");
  ASSERT_FALSE(failing);
  EXPECT_THAT(failing.error().message, HasSubstr("code 3"));
}

TEST(NcclLibrary, VersionTextKnowsBothEncodings) {
  EXPECT_EQ(nccl_version_text(2804), "2.8.4");
  EXPECT_EQ(nccl_version_text(20901), "2.9.1");
  EXPECT_EQ(nccl_version_text(22809), "2.28.9");
}

}  // namespace
}  // namespace artune
