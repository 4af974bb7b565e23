// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "model/machine.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace artune::model {
namespace {

constexpr std::uint64_t kMostSteps = 1'000'000;  // of one run: a few calls take thousands
constexpr std::size_t kStepsShown = 14;          // of every actor, in a failure's text
constexpr unsigned kGranule = 4;
Machine* running = nullptr;

std::string hex(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::uint64_t value_at(const void* address, unsigned bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, address, bytes);
  return value;
}

}  // namespace

const char* to_string(Found found) {
  switch (found) {
    case Found::wrong_sum:
      return "wrong sum";
    case Found::race:
      return "race";
    case Found::deadlock:
      return "deadlock";
    case Found::reported:
      return "failure report";
    case Found::endless:
      return "no end";
  }
  return "";
}

void Machine::View::set(std::uint32_t location, std::size_t message) {
  if (location >= at.size()) at.resize(location + 1);
  at[location] = static_cast<std::uint16_t>(message);
}

void Machine::View::join(const View& other) {
  if (at.size() < other.at.size()) at.resize(other.at.size());
  for (std::size_t i = 0; i < other.at.size(); ++i) at[i] = std::max(at[i], other.at[i]);
  for (std::size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], other.clock[i]);
}

Machine::Machine(Options options) : options_(options) {
  for (auto& actor : actors_) actor = std::make_unique<Actor>();
}
Machine::~Machine() = default;

void Machine::share(std::string name, const void* memory, std::size_t bytes, int rank) {
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  if (bytes > 0)
    regions_.push_back(
        {begin, begin + bytes, std::move(name), rank, std::vector<std::int32_t>((bytes + kGranule - 1) / kGranule, -1)});
}

Machine::Location* Machine::find(const void* address, unsigned bytes) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const auto holds = [at](const Region& region) { return at >= region.begin && at < region.end; };
  if (last_region_ >= regions_.size() || !holds(regions_[last_region_])) {
    const auto found = std::find_if(regions_.begin(), regions_.end(), holds);
    if (found == regions_.end()) return nullptr;
    last_region_ = static_cast<std::uint32_t>(found - regions_.begin());
  }
  Region& region = regions_[last_region_];
  std::int32_t& index = region.locations[(at - region.begin) / kGranule];
  if (index < 0) {
    if (used_ == locations_.size()) locations_.emplace_back();
    index = static_cast<std::int32_t>(used_);
    Location& location = locations_[used_++];
    location.region = last_region_;
    location.offset = static_cast<std::uint32_t>(at - region.begin);
    location.bytes = bytes;
    location.read_clock = {};
    location.history.assign(1, {value_at(address, bytes), -1, -1, false});
  }
  Location& location = locations_[static_cast<std::uint32_t>(index)];
  if (location.bytes != bytes || location.offset != at - region.begin) {
    std::fprintf(stderr, "model: %s is accessed in two widths\n", name_of(location).c_str());
    std::abort();  // the model would miss what the accesses have to do with each other
  }
  return &location;
}

std::string Machine::name_of(int actor) const {
  const int block = actor % (kMostModelBlocks + 1);
  return "rank " + std::to_string(actor / (kMostModelBlocks + 1)) +
         (block == kMostModelBlocks ? " stream" : " block " + std::to_string(block));
}

std::string Machine::name_of(const Location& location) const {
  return regions_[location.region].name + "+" + hex(location.offset);
}

void Machine::note(Kind kind, const Location& location, std::size_t message) {
  trace_.push_back({static_cast<std::int16_t>(current_), kind, index_of(&location), static_cast<std::uint32_t>(message),
                    static_cast<std::uint32_t>(location.history.size() - 1), location.history[message].value});
}

/// The fiber has learnt or done something: it isn't (only) polling.
void Machine::news() {
  Actor& actor = *actors_[current_];
  actor.polled.clear();
  actor.rereads = 0;
  actor.impatient = actor.stands_by = false;
}

/// A fiber that has found nothing new in a whole round of its poll loop can't go on before one of the places changes.
bool Machine::can_go_on(const Actor& actor) const {
  if (!actor.runs) return false;
  if (actor.impatient) return true;
  if (actor.rereads < static_cast<int>(actor.polled.size()) + 2) return true;
  return std::any_of(actor.polled.begin(), actor.polled.end(),
                     [&](std::uint32_t location) { return actor.view.of(location) + 1U < locations_[location].history.size(); });
}

/// Lets the wait of one fiber that can't go on run out of time. False: there is none.
bool Machine::lose_patience() {
  std::array<int, kMostActors> waiting{};
  std::size_t size = 0;
  for (int actor = 0; actor < kMostActors; ++actor) {
    if (actors_[actor]->runs && !actors_[actor]->stands_by && !can_go_on(*actors_[actor])) waiting[size++] = actor;
  }
  if (size == 0) return false;
  actors_[choices_->next({waiting.data(), size}, -1)]->impatient = true;
  return true;
}

std::span<const int> Machine::runnable() {
  std::size_t size = 0;
  for (int actor = 0; actor < kMostActors; ++actor) {
    if (can_go_on(*actors_[actor])) runnable_[size++] = actor;
  }
  return {runnable_.data(), size};
}

/// Before every step that another fiber might see: who makes the next one?
void Machine::point(const Location& location) {
  if (!in_fiber_) return;
  if (++steps_ > kMostSteps) fail(Found::endless, "more than " + std::to_string(kMostSteps) + " steps");
  if (draining_) return;
  const int rank = regions_[location.region].rank;
  if (rank >= 0 && program_->blocks(call_of_[rank]) == 1) return;  // nobody else looks there
  const int chosen = choices_->next(runnable(), current_);
  if (chosen == current_) return;
  next_ = chosen;
  Fiber::suspend();
}

std::uint64_t Machine::do_load(Location& location, Order order) {
  const std::uint32_t index = index_of(&location);
  Actor& actor = *actors_[current_];
  const bool again = std::find(actor.polled.begin(), actor.polled.end(), index) != actor.polled.end();
  if (!again) point(location);
  Location& place = locations_[index];  // other fibers may have made room for more
  const std::size_t seen = actor.view.of(index), newest = place.history.size() - 1;
  if (options_.races) {
    for (std::size_t i = seen + 1; i <= newest; ++i) {
      if (place.history[i].plain)
        fail(Found::race,
             name_of(current_) + " looks at " + name_of(place) + " beside a plain write of " + name_of(place.history[i].actor));
    }
  }
  std::size_t message = newest;
  if (newest > seen && actor.rereads < choices_->stubbornness() && !draining_) {
    message -= static_cast<std::size_t>(choices_->staleness(static_cast<int>(newest - seen)));
  }
  note(order == Order::acquire ? Kind::acquire : Kind::load, place, message);
  const std::uint64_t value = place.history[message].value;
  if (const std::int32_t carried = place.history[message].carried; carried >= 0) {
    (order == Order::acquire ? actor.view : actor.seen).join(released_[carried]);
  }
  if (message > seen) {
    actor.view.set(index, message);
    news();
  } else if (!again) {
    actor.polled.push_back(index);
  } else {
    ++actor.rereads;
    if (in_fiber_ && !draining_ && !can_go_on(actor)) {
      next_ = -1;
      Fiber::suspend();
    }
  }
  return value;
}

void Machine::append(Location& location, Message message, Kind kind) {
  location.history.push_back(message);
  actors_[current_]->view.set(index_of(&location), location.history.size() - 1);
  note(kind, location, location.history.size() - 1);
  news();
}

std::int32_t Machine::keep(const View& view) {
  if (released_used_ == released_.size()) released_.emplace_back();
  released_[released_used_] = view;
  return static_cast<std::int32_t>(released_used_++);
}

void Machine::do_store(Location& location, std::uint64_t value, Order order) {
  const std::uint32_t index = index_of(&location);
  point(location);
  Message message{value, actors_[current_]->fence, static_cast<std::int16_t>(current_), false};
  View& view = actors_[current_]->view;
  append(locations_[index], message, order == Order::release ? Kind::release : Kind::store);
  if (order != Order::release) return;
  locations_[index].history.back().carried = keep(view);
  ++view.clock[current_];  // what it reads from now on, nobody is ordered after yet
}

std::uint64_t Machine::do_read(Location& location) {
  if (!options_.races) {
    const std::size_t seen = actors_[current_]->view.of(index_of(&location)), newest = location.history.size() - 1;
    const std::size_t message = newest > seen && in_fiber_
                                    ? newest - static_cast<std::size_t>(choices_->staleness(static_cast<int>(newest - seen)))
                                    : newest;
    actors_[current_]->view.set(index_of(&location), message);
    note(Kind::read, location, message);
    news();
    return location.history[message].value;
  }
  note(Kind::read, location, location.history.size() - 1);
  if (actors_[current_]->view.of(index_of(&location)) + 1U < location.history.size()) {
    fail(Found::race, name_of(current_) + " reads " + name_of(location) + " and isn't ordered after the write of " +
                          name_of(location.history.back().actor));
  }
  location.read_clock[current_] = actors_[current_]->view.clock[current_];
  news();
  return location.history.back().value;
}

void Machine::do_write(Location& location, std::uint64_t value) {
  const View& view = actors_[current_]->view;
  const bool unordered = view.of(index_of(&location)) + 1U < location.history.size();
  const int last = location.history.back().actor;
  append(location, {value, -1, static_cast<std::int16_t>(current_), true}, Kind::write);
  if (!options_.races) return;
  if (unordered)
    fail(Found::race,
         name_of(current_) + " writes " + name_of(location) + " and isn't ordered after the write of " + name_of(last));
  for (int actor = 0; actor < kMostActors; ++actor) {
    if (actor != current_ && location.read_clock[actor] > view.clock[actor]) {
      fail(Found::race,
           name_of(current_) + " writes " + name_of(location) + " and isn't ordered after the read of " + name_of(actor));
    }
  }
}

void Machine::fail(Found found, const std::string& text) {
  // What goes wrong while all waits are made to end is no news.
  if (!failure_ && !draining_) failure_ = Failure{found, std::string(to_string(found)) + ": " + text};
  if (!in_fiber_) return;
  next_ = -1;
  Fiber::suspend();  // never to be resumed
}

void Machine::stream_store(int rank, void* to, std::uint32_t value) {
  current_ = stream_of(rank);
  if (Location* location = find(to, kGranule)) {
    do_write(*location, value);
  } else {
    std::memcpy(to, &value, sizeof value);
  }
}

std::uint32_t Machine::stream_load(int rank, const void* from) {
  current_ = stream_of(rank);
  Location* location = find(from, kGranule);
  return static_cast<std::uint32_t>(location != nullptr ? do_read(*location) : value_at(from, kGranule));
}

void Machine::begin_call(int rank) {
  const int call = call_of_[rank];
  program_->before(rank, call);
  Actor& stream = *actors_[stream_of(rank)];
  const std::int32_t fence = options_.boundary_fences ? keep(stream.view) : -1;
  for (int block = 0; block < program_->blocks(call); ++block) {
    const int self = actor_of(rank, block);
    Actor& actor = *actors_[self];
    actor.view = stream.view;
    actor.seen.at.clear();
    actor.seen.clock = {};
    actor.fence = fence;
    ++actor.view.clock[self];
    actor.polled.clear();
    actor.rereads = 0;
    actor.impatient = actor.stands_by = false;
    actor.runs = true;
    actor.fiber.start([this, rank, call, block] { program_->block(rank, call, block); });
  }
  ++stream.view.clock[stream_of(rank)];
}

void Machine::end_call(int rank) {
  Actor& stream = *actors_[stream_of(rank)];
  for (int block = 0; block < program_->blocks(call_of_[rank]); ++block) {
    const Actor& actor = *actors_[actor_of(rank, block)];
    stream.view.join(actor.view);
    if (options_.boundary_fences) stream.view.join(actor.seen);
  }
  if (const std::optional<Failure> wrong = program_->after(rank, call_of_[rank])) fail(wrong->found, wrong->text);
  if (++call_of_[rank] < program_->calls(rank) && !failure_) begin_call(rank);
}

void Machine::reset() {
  for (std::uint32_t i = 0; i < used_; ++i) regions_[locations_[i].region].locations[locations_[i].offset / kGranule] = -1;
  used_ = 0;
  released_used_ = 0;
  for (auto& actor : actors_) {
    actor->view.at.clear();
    actor->view.clock = {};
    actor->runs = false;
  }
  trace_.clear();
  steps_ = 0;
  clock_ns_ = 1;
  draining_ = false;
  failure_.reset();
  call_of_.assign(static_cast<std::size_t>(program_->ranks()), 0);
}

std::optional<Failure> Machine::run(Program& program, Choices& choices) {
  program_ = &program;
  choices_ = &choices;
  running = this;
  reset();
  for (int rank = 0; rank < program.ranks() && !failure_; ++rank) {
    if (program.calls(rank) > 0) begin_call(rank);
  }
  next_ = -1;
  while (!failure_) {
    if (next_ < 0) {
      if (options_.impatience && (runnable().empty() || choices.impatient())) lose_patience();
      const std::span<const int> who = runnable();
      if (who.empty()) {
        if (std::any_of(actors_.begin(), actors_.end(), [](const auto& actor) { return actor->runs; })) {
          const std::string text = stuck();
          draining_ = false;
          fail(Found::deadlock, text);
        }
        break;
      }
      next_ = choices.next(who, -1);
    }
    current_ = next_;
    Actor& actor = *actors_[current_];
    in_fiber_ = true;
    actor.fiber.resume();
    in_fiber_ = false;
    if (!actor.fiber.ended() || failure_) continue;
    actor.runs = false;
    next_ = -1;
    const int rank = current_ / (kMostModelBlocks + 1);
    bool all = true;
    for (int block = 0; block < kMostModelBlocks; ++block) all = all && !actors_[actor_of(rank, block)]->runs;
    if (all) end_call(rank);
  }
  running = nullptr;
  if (failure_) failure_->text += "\n" + trace();
  return failure_;
}

/// Who polls what, and, by letting all waits run out of time, what the bodies themselves report about it.
std::string Machine::stuck() {
  std::string text = "nobody can go on";
  std::vector<int> stuck;
  for (int actor = 0; actor < kMostActors; ++actor) {
    if (!actors_[actor]->runs) continue;
    stuck.push_back(actor);
    text += "\n  " + name_of(actor) + " in call " + std::to_string(call_of_[actor / (kMostModelBlocks + 1)]) + " polls";
    for (const std::uint32_t location : actors_[actor]->polled) {
      text += " " + name_of(locations_[location]) + "=" + hex(locations_[location].history.back().value);
    }
  }
  const std::size_t shown = trace_.size();
  draining_ = true;
  for (const int actor : stuck) {
    current_ = actor;
    in_fiber_ = true;
    actors_[actor]->fiber.resume();
    in_fiber_ = false;
  }
  trace_.resize(shown);
  return text + program_->reports();
}

std::string Machine::trace() const {
  static constexpr const char* kNames[] = {"load", "load.acquire", "store", "store.release", "rmw", "read", "write"};
  std::string text;
  for (int actor = 0; actor < kMostActors; ++actor) {
    std::vector<const Step*> steps;
    for (auto step = trace_.rbegin(); step != trace_.rend() && steps.size() < kStepsShown; ++step) {
      if (step->actor == actor) steps.push_back(&*step);
    }
    if (steps.empty() || (steps.size() == 1 && actor % (kMostModelBlocks + 1) == kMostModelBlocks)) continue;
    text += "last steps of " + name_of(actor) + ":\n";
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
      const Step& at = **step;
      text += "  #" + std::to_string(&at - trace_.data()) + " " + kNames[static_cast<int>(at.kind)] + " " +
              name_of(locations_[at.location]) + " = " + hex(at.value);
      if (at.message < at.newest) text += " (" + std::to_string(at.newest - at.message) + " behind the newest)";
      text += "\n";
    }
  }
  return text;
}

std::uint64_t load(const void* from, unsigned bytes, Order order) {
  Machine::Location* location = running == nullptr ? nullptr : running->find(from, bytes);
  return location == nullptr ? value_at(from, bytes) : running->do_load(*location, order);
}

void store(void* to, unsigned bytes, std::uint64_t value, Order order) {
  Machine::Location* location = running == nullptr ? nullptr : running->find(to, bytes);
  if (location == nullptr) {
    std::memcpy(to, &value, bytes);
  } else {
    running->do_store(*location, value, order);
  }
}

std::uint64_t fetch_add(void* word, unsigned bytes, std::uint64_t amount) {
  Machine::Location* location = running->find(word, bytes);
  const std::uint32_t index = running->index_of(location);
  running->point(*location);
  Machine::Location& place = running->locations_[index];
  const std::uint64_t before = place.history.back().value;
  running->append(place, {before + amount, -1, static_cast<std::int16_t>(running->current_), false}, Machine::Kind::rmw);
  return before;
}

std::uint64_t compare_exchange(void* word, unsigned bytes, std::uint64_t expected, std::uint64_t wanted) {
  Machine::Location* location = running->find(word, bytes);
  const std::uint32_t index = running->index_of(location);
  running->point(*location);
  Machine::Location& place = running->locations_[index];
  const std::uint64_t before = place.history.back().value;
  running->append(place, {before == expected ? wanted : before, -1, static_cast<std::int16_t>(running->current_), false},
                  Machine::Kind::rmw);
  return before;
}

void copy(void* to, const void* from, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += kGranule) {
    void* const there = static_cast<char*>(to) + at;
    const void* const here = static_cast<const char*>(from) + at;
    // Where races end the run, nothing can come between the words of a vector that would show.
    const bool point = at % 16 == 0 || !running->options_.races;
    std::uint32_t word;
    if (Machine::Location* location = running->find(here, kGranule)) {
      const std::uint32_t index = running->index_of(location);
      if (point) running->point(*location);
      word = static_cast<std::uint32_t>(running->do_read(running->locations_[index]));
    } else {
      word = static_cast<std::uint32_t>(value_at(here, kGranule));
    }
    if (Machine::Location* location = running->find(there, kGranule)) {
      const std::uint32_t index = running->index_of(location);
      if (point) running->point(*location);
      running->do_write(running->locations_[index], word);
    } else {
      std::memcpy(there, &word, sizeof word);
    }
  }
}

/// Stands still, so that nobody gives up, until a deadlock has been found or a wait is to run out of time.
std::uint64_t now_ns() {
  if (running->draining_ || running->actors_[running->current_]->impatient) running->clock_ns_ += 1'000'000'000'000;
  return running->clock_ns_;
}

void stand_by() {
  Machine::Actor& actor = *running->actors_[running->current_];
  actor.stands_by = true;
  if (!running->in_fiber_ || !(running->draining_ || actor.impatient)) return;
  actor.impatient = false;
  running->next_ = -1;
  Fiber::suspend();
}

}  // namespace artune::model
