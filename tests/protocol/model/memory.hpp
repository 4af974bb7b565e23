// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Takes the place of protocol/host_memory.hpp (macro ARTUNE_MODEL_MEMORY in protocol/memory.cuh): the same names, every
// access a step of the running model::Machine. The protocol bodies are compiled unchanged.
#pragma once

#include <cstddef>
#include <cstdint>

namespace artune::model {

enum class Order : std::uint8_t { relaxed, acquire, release };

std::uint64_t load(const void* from, unsigned bytes, Order order);
void store(void* to, unsigned bytes, std::uint64_t value, Order order);
std::uint64_t fetch_add(void* word, unsigned bytes, std::uint64_t amount);
std::uint64_t compare_exchange(void* word, unsigned bytes, std::uint64_t expected, std::uint64_t wanted);
void copy(void* to, const void* from, std::size_t bytes);
std::uint64_t now_ns();
void stand_by();

}  // namespace artune::model

namespace artune::host {

inline constexpr auto relaxed = model::Order::relaxed;
inline constexpr auto acquire = model::Order::acquire;
inline constexpr auto release = model::Order::release;

template <typename Word>
Word load(const Word* from, model::Order order) {
  return static_cast<Word>(model::load(from, sizeof(Word), order));
}
template <typename Word>
void store(Word* to, Word value, model::Order order) {
  model::store(to, sizeof(Word), value, order);
}
/// Orders nothing here: on the GPU the tickets are relaxed, and the bodies may not count on more.
template <typename Word>
Word fetch_add(Word* word, Word amount) {
  return static_cast<Word>(model::fetch_add(word, sizeof(Word), amount));
}
template <typename Word>
Word compare_exchange(Word* word, Word expected, Word wanted) {
  return static_cast<Word>(model::compare_exchange(word, sizeof(Word), expected, wanted));
}
inline void copy_from(void* to, const void* from, std::size_t bytes) { model::copy(to, from, bytes); }
inline void copy_to(void* to, const void* from, std::size_t bytes) { model::copy(to, from, bytes); }
inline std::uint64_t now_ns() { return model::now_ns(); }
inline void yield() {}
inline void stand_by() { model::stand_by(); }

}  // namespace artune::host
