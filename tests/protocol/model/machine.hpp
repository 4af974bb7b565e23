// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// A machine of ranks with a weak memory, run one step at a time by one thread.
//
// Every (rank, block) is a fiber. Memory that ranks share is a set of locations (words as the accesses are wide; payload
// in 4-byte granules), each with the history of all messages stored to it, in the order of the stores. A fiber has a view:
// for each location the oldest message that it may still see.
//   load        any message from the fiber's view on; the choice is Choices'
//   store       appends; with release it carries the storer's view, and an acquire load that returns it joins that
//   RMW         reads the newest and appends; orders nothing
//   plain       never polled, so always ordered: a read whose newest message isn't in the view, or a write beside a read or
//               write that it isn't ordered after, is a race and ends the run (unless Options::races is off: then as relaxed)
// A rank's next call begins with the join of the views of its last one's fibers (stream order), and no other rank waits
// for that. The memory itself is never written: every run starts from the same state.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/choices.hpp"
#include "model/fiber.hpp"
#include "model/memory.hpp"

namespace artune::model {

inline constexpr int kMostModelBlocks = 3;

enum class Found : std::uint8_t { wrong_sum, race, deadlock, reported, endless };
const char* to_string(Found found);

struct Failure {
  Found found;
  std::string text;
};

/// What the ranks do: calls 0, 1, … (not all ranks need make as many), each of blocks that run concurrently.
class Program {
 public:
  virtual ~Program() = default;
  virtual int ranks() const = 0;
  virtual int calls(int rank) const = 0;
  virtual int blocks(int call) const = 0;
  virtual void block(int rank, int call, int block) = 0;
  /// In the rank's stream before and after the call; the latter returns what is wrong, or nothing.
  virtual void before(int rank, int call) = 0;
  virtual std::optional<Failure> after(int rank, int call) = 0;
  /// Who gave up waiting for whom: asked after a deadlock, when all waits have been made to time out.
  virtual std::string reports() = 0;
};

class Machine {
 public:
  struct Options {
    bool races = true;  ///< a race ends the run by itself, wrong sum or not
    /// A rank's call ends and begins with a fence of system scope, as grids do in practice: what it saw, relaxed or not,
    /// is ordered before what it does in the next one, for whoever sees that. Off: a weaker memory, so a stronger proof.
    bool boundary_fences = false;
    /// Any wait may run out of time, and none is a deadlock.
    bool impatience = false;
  };

  explicit Machine(Options options);
  ~Machine();

  /// Memory that ranks share. `rank`: whose fibers alone use it, or -1.
  void share(std::string name, const void* memory, std::size_t bytes, int rank = -1);

  std::optional<Failure> run(Program& program, Choices& choices);
  std::uint64_t steps() const { return steps_; }

  /// In a rank's stream (Program::before, after): a 32-bit word of memory, shared or not.
  void stream_store(int rank, void* to, std::uint32_t value);
  std::uint32_t stream_load(int rank, const void* from);

 private:
  friend std::uint64_t load(const void*, unsigned, Order);
  friend void store(void*, unsigned, std::uint64_t, Order);
  friend std::uint64_t fetch_add(void*, unsigned, std::uint64_t);
  friend std::uint64_t compare_exchange(void*, unsigned, std::uint64_t, std::uint64_t);
  friend void copy(void*, const void*, std::size_t);
  friend std::uint64_t now_ns();
  friend void stand_by();

  struct View {
    std::vector<std::uint16_t> at;                   ///< by location; missing = 0, the message that was there at first
    std::array<std::uint32_t, kMostActors> clock{};  ///< what of each actor's reads this one is ordered after
    std::uint16_t of(std::uint32_t location) const { return location < at.size() ? at[location] : std::uint16_t{0}; }
    void set(std::uint32_t location, std::size_t message);
    void join(const View& other);
  };
  struct Message {
    std::uint64_t value;
    std::int32_t carried;  ///< index of the view it releases, or -1
    std::int16_t actor;    ///< -1: was there at first
    bool plain;
  };
  struct Location {
    std::uint32_t region, offset;
    unsigned bytes;
    std::vector<Message> history;
    std::array<std::uint32_t, kMostActors> read_clock{};
  };
  struct Region {
    std::uintptr_t begin, end;
    std::string name;
    int rank;
    std::vector<std::int32_t> locations;  ///< by granule; -1 = untouched
  };
  struct Actor {
    Fiber fiber;
    View view;
    View seen;                          ///< carried by what relaxed loads returned: joined at the next fence
    std::int32_t fence = -1;            ///< view that relaxed stores carry since the last fence, or -1
    bool runs = false;                  ///< a block that hasn't ended
    bool impatient = false;             ///< its wait runs out of time
    bool stands_by = false;             ///< its wait isn't one that does
    std::vector<std::uint32_t> polled;  ///< locations read since the last news or store
    int rereads = 0;
  };
  enum class Kind : std::uint8_t { load, acquire, store, release, rmw, read, write };
  struct Step {
    std::int16_t actor;
    Kind kind;
    std::uint32_t location;
    std::uint32_t message, newest;
    std::uint64_t value;
  };

  static int actor_of(int rank, int block) { return rank * (kMostModelBlocks + 1) + block; }
  static int stream_of(int rank) { return actor_of(rank, kMostModelBlocks); }
  std::string name_of(int actor) const;
  std::string name_of(const Location& location) const;

  Location* find(const void* address, unsigned bytes);
  std::uint32_t index_of(const Location* location) const { return static_cast<std::uint32_t>(location - locations_.data()); }
  void point(const Location& location);
  bool can_go_on(const Actor& actor) const;
  bool lose_patience();
  std::span<const int> runnable();
  std::uint64_t do_load(Location& location, Order order);
  void do_store(Location& location, std::uint64_t value, Order order);
  std::uint64_t do_read(Location& location);
  void do_write(Location& location, std::uint64_t value);
  void append(Location& location, Message message, Kind kind);
  std::int32_t keep(const View& view);
  void note(Kind kind, const Location& location, std::size_t message);
  void news();
  void fail(Found found, const std::string& text);
  void begin_call(int rank);
  void end_call(int rank);
  void reset();
  std::string stuck();
  std::string trace() const;

  Options options_;
  std::vector<Region> regions_;
  std::uint32_t last_region_ = 0;
  std::vector<Location> locations_;  ///< the first `used_` are of this run; kept for their allocations
  std::uint32_t used_ = 0;
  std::vector<View> released_;
  std::size_t released_used_ = 0;
  std::array<std::unique_ptr<Actor>, kMostActors> actors_;
  std::vector<int> call_of_;  ///< by rank
  std::array<int, kMostActors> runnable_{};
  std::vector<Step> trace_;
  Program* program_ = nullptr;
  Choices* choices_ = nullptr;
  int current_ = -1;  ///< actor whose step it is
  int next_ = -1;
  bool in_fiber_ = false, draining_ = false;
  std::uint64_t steps_ = 0, clock_ns_ = 1;
  std::optional<Failure> failure_;
};

}  // namespace artune::model
