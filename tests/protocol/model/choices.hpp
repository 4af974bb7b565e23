// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Who decides what the model leaves open: which fiber goes on, and which of the values that it may see a load returns.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace artune::model {

/// Ranks times blocks, and a stream for each rank.
inline constexpr int kMostActors = 16;

class Choices {
 public:
  virtual ~Choices() = default;
  /// One of `runnable` (actors, never empty). `current` is the one that runs, or -1 where it can't go on. Called at every
  /// step that another fiber might see.
  virtual int next(std::span<const int> runnable, int current) = 0;
  /// How many messages before the newest a load returns, 0 .. `oldest`.
  virtual int staleness(int oldest) = 0;
  /// Loads of old values in one poll loop before the newest is served: memory delivers in the end.
  virtual int stubbornness() const = 0;
  /// Whether somebody's wait runs out of time now.
  virtual bool impatient() = 0;
};

/// Random, everything from the seed: how often fibers are preempted, how stale loads are, and in every other seed fixed
/// priorities with a few random drops instead of a random walk (so that one rank runs far ahead of another).
class RandomChoices final : public Choices {
 public:
  explicit RandomChoices(std::uint64_t seed);
  int next(std::span<const int> runnable, int current) override;
  int staleness(int oldest) override;
  int stubbornness() const override { return stubbornness_; }
  bool impatient() override { return one_in(1 << 9); }
  /// Uniform in [0, n), for the scenario of this seed.
  int below(int n) { return static_cast<int>((random() >> 32) * static_cast<std::uint64_t>(n) >> 32); }

 private:
  std::uint64_t random();
  bool one_in(std::uint32_t per_65536) { return (random() >> 48) < per_65536; }

  std::uint64_t state_;
  std::uint32_t preempt_, stale_;
  int stubbornness_;
  bool by_priority_;
  std::array<int, kMostActors> priority_{};
  std::vector<std::uint64_t> drops_;  ///< steps at which the running fiber becomes the last
  std::uint64_t steps_ = 0;
  int lowest_ = 0;
};

/// All choices one after the other, depth first, by replaying a prefix. A fiber goes on until it can't, then comes the first
/// that can, and loads return the newest: anything else is a deviation, and runs with more of them than allowed are left out.
class AllChoices final : public Choices {
 public:
  explicit AllChoices(int most_deviations) : most_deviations_(most_deviations) {}
  /// One run by a prefix that a failure printed.
  explicit AllChoices(std::vector<int> prefix) : prefix_(std::move(prefix)) {}

  int next(std::span<const int> runnable, int current) override;
  int staleness(int oldest) override { return choose(oldest + 1); }
  int stubbornness() const override { return 1; }
  bool impatient() override { return false; }

  /// Sets up the next run; false when all have been.
  bool advance();
  /// The choices of the last run up to its last deviation.
  std::vector<int> prefix() const;

 private:
  struct Point {
    int options, chosen;
  };
  int choose(int options);

  int most_deviations_ = 0;
  std::vector<int> prefix_;
  std::vector<Point> points_;
};

}  // namespace artune::model
