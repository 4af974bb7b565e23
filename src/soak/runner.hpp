// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Runner: the soak of one group of ranks. In every stream a step (device.hpp) stands before each call: it checks the call
// before and fills the buffers of this one, so each stream of a rank alternates between two sets of buffers of its own.
// Graphs use the first stream, eager calls both; a set is touched by kernels of one stream only.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/group.hpp"
#include "soak/graphs.hpp"
#include "soak/lane.hpp"
#include "soak/plan.hpp"
#include "soak/report.hpp"
#include "soak/soak.hpp"
#include "soak/watchdog.hpp"

namespace artune::soak {

class Runner {
 public:
  /// Throws Failure.
  Runner(const SoakOptions& options, int ranks, Tally& tally, Watchdog& watchdog);

  bool has_cells() const { return !source_->cells().empty(); }
  /// Counts in the tally. `is_over` is asked between batches. After an error (or Failure) kernels may still run: don't
  /// destroy it then.
  std::optional<Error> run(std::uint64_t calls, const std::function<bool()>& is_over);

 private:
  struct Pending {
    DrawnCall call;
    int set;
  };

  bool admitted(const CandidateInfo& info) const;
  int most_blocks() const;
  std::uint32_t salt_of(const DrawnCall& call) const { return static_cast<std::uint32_t>(Dice(seed_ ^ call.number).next()); }
  const Cell& cell_of(const DrawnCall& call) const { return source_->cells()[call.cell]; }
  Calls& calls_of(const DrawnCall& call) { return tally_.calls[{cell_of(call).candidate, cell_of(call).form}][ranks_]; }
  std::uint32_t* progress_word(int rank) const;
  WrongRecord* shown_record(int rank) const;

  std::unique_ptr<Group> make_group() const;
  void capture(const std::vector<DrawnCall>& calls);
  Step step_of(int rank, int stream) const;
  void issue(const DrawnCall& drawn, int stream);
  void finish(int rank, int stream);
  std::optional<Error> batch(const std::vector<DrawnCall>& captured, int replays);
  bool all_ended() const;
  std::optional<std::string> wait();
  std::optional<Error> wait_and_look(const std::vector<DrawnCall>& captured, const std::vector<DrawnCall>& eager);
  Wrong describe(const WrongRecord& record, int rank, const std::vector<DrawnCall>& captured,
                 const std::vector<DrawnCall>& eager) const;

  const SoakOptions& options_;
  int ranks_;
  std::uint64_t seed_;
  Tally& tally_;
  Watchdog& watchdog_;
  PinnedMemory host_;  ///< of every rank: a copy of its record, its progress word
  std::unique_ptr<Group> group_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::optional<CallSource> source_;
  std::unique_ptr<Graphs> graphs_;
  std::array<std::optional<Pending>, kStreams> pending_;  ///< the last call on each stream, not checked yet
  std::vector<RankBuffers> buffers_;                      ///< of the call at hand
};

}  // namespace artune::soak
