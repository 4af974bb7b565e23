// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "machine/rig_verify.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "machine/reference.hpp"

namespace artune {
namespace {

// Above the size of one launch a message is more launches of the same kind, nothing else: two launches and a bit show all
// that 64 MiB would, in milliseconds. Likewise blocks: each works on its own packets, and on CPU threads a
// hundred of them spinning on two cores would take seconds.
constexpr std::size_t kLaunchBytes = std::size_t{8} << 10;
constexpr std::size_t kMostBytes = 2 * kLaunchBytes + 1000;
constexpr int kMostBlocks = 2;
constexpr std::size_t kGuardBytes = 64;
constexpr unsigned char kGuardByte = 0xA5;

/// `count` elements between guards, one element off the natural 16-byte alignment: protocols promise any element-aligned pointer.
class GuardedBuffer {
 public:
  GuardedBuffer(DType dtype, std::size_t count)
      : front_(kGuardBytes + element_bytes(dtype)),
        size_(count * element_bytes(dtype)),
        bytes_(front_ + size_ + kGuardBytes, kGuardByte) {}

  void* data() { return bytes_.data() + front_; }
  const void* data() const { return bytes_.data() + front_; }
  bool intact() const {
    const auto guard = [](unsigned char byte) { return byte == kGuardByte; };
    const auto front = static_cast<std::ptrdiff_t>(front_);
    const auto back = static_cast<std::ptrdiff_t>(front_ + size_);
    return std::all_of(bytes_.begin(), bytes_.begin() + front, guard) && std::all_of(bytes_.begin() + back, bytes_.end(), guard);
  }

 private:
  std::size_t front_, size_;
  std::vector<unsigned char> bytes_;
};

struct Round {
  InputKind kind;
  bool in_place;
};
// Integers first: their sums are exact in any order, so a wrong one is a lost or doubled contribution and no rounding.
constexpr std::array<Round, 3> kRounds = {
    {{InputKind::small_integers, false}, {InputKind::random_reals, false}, {InputKind::random_reals, true}}};

OutcomeKind outcome_of(Reason reason) {
  switch (reason) {
    case Reason::hang:
      return OutcomeKind::hang;
    case Reason::unavailable:
      return OutcomeKind::unavailable;
    case Reason::wrong_sum:
      return OutcomeKind::wrong_sum;
    default:
      return OutcomeKind::error;
  }
}

/// What one rank got, against what it should have got.
Outcome compare(DType dtype, int rank, const GuardedBuffer& expected, const GuardedBuffer& output, std::size_t count) {
  const std::string where = "rank " + std::to_string(rank) + ", ";
  if (!output.intact()) return {OutcomeKind::wrong_sum, where + "wrote outside its output"};
  if (const auto wrong = first_difference(dtype, expected.data(), output.data(), count)) {
    return {OutcomeKind::wrong_sum, where + describe(*wrong)};
  }
  return {};
}

}  // namespace

RigVerifier::RigVerifier(int ranks) : ranks_(ranks) {}

Verification RigVerifier::verify(const CandidateInfo& info, const Candidate& candidate, const Shape& shape,
                                 const std::optional<LostContribution>& lost) {
  const Numerics promised = numerics_of(info, shape.dtype, shape.wire);
  Verification verification{.outcome = {}, .checked = true, .numerics = promised};
  Geometry geometry = candidate.geometry;
  if (geometry.blocks > 0) geometry.blocks = std::min(geometry.blocks, kMostBlocks);
  const std::size_t count = std::min(shape.bytes, kMostBytes) / element_bytes(shape.dtype);
  if (group_ == nullptr) group_ = std::make_unique<HostGroup>(ranks_, kLaunchBytes);

  for (const Round& round : kRounds) {
    const std::uint64_t call = ++call_;
    std::vector<GuardedBuffer> inputs, outputs;
    std::vector<const void*> originals, sources;
    std::vector<void*> targets;
    for (int rank = 0; rank < ranks_; ++rank) {
      inputs.emplace_back(shape.dtype, count);
      fill_inputs(round.kind, shape.dtype, rank, call, inputs.back().data(), count);
      outputs.emplace_back(shape.dtype, count);
      if (round.in_place) {
        std::memcpy(outputs.back().data(), inputs.back().data(), count * element_bytes(shape.dtype));
      } else {
        fill_nan(shape.dtype, outputs.back().data(), count);
      }
    }
    for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
      originals.push_back(inputs[rank].data());
      sources.push_back(round.in_place ? outputs[rank].data() : inputs[rank].data());
      targets.push_back(outputs[rank].data());
    }

    const Status done = group_->all_reduce(info.id, geometry, shape.dtype, sources, targets, count, shape.lossy());
    if (!done) {
      group_.reset();  // a group that timed out is in error for good
      verification.outcome = {outcome_of(done.error().reason), done.error().message};
      return verification;
    }
    if (lost) {
      std::vector<const void*> arrived = originals;
      arrived.erase(arrived.begin() + lost->from);
      rank_order_sum(shape.dtype, arrived, targets[static_cast<std::size_t>(lost->to)], count);
    }

    GuardedBuffer expected(shape.dtype, count);
    if (shape.lossy()) {
      bf16_wire_sum(originals, promised == Numerics::wire_bf16_in_out, expected.data(), count);
    } else if (promised == Numerics::rank_order_fp32 || round.kind == InputKind::small_integers) {
      rank_order_sum(shape.dtype, originals, expected.data(), count);
    } else {
      // Another order, other bits: what can be asked for is that all ranks have the same.
      std::memcpy(expected.data(), outputs.front().data(), count * element_bytes(shape.dtype));
    }
    for (int rank = 0; rank < ranks_ && verification.outcome.ok(); ++rank) {
      verification.outcome = compare(shape.dtype, rank, expected, outputs[static_cast<std::size_t>(rank)], count);
    }
    if (!verification.outcome.ok()) return verification;
  }
  return verification;
}

}  // namespace artune
