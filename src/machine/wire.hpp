// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// What supervisor and worker say to each other: one JSON object a line, one reply per request, in order.
//
//   supervisor: {"id": 7, "request": "verify", "candidate": {"name": "p2p/one-shot/ll", …}, "shape": {…}}
//   worker:     {"id": 7, "value": {…}}        or  {"id": 7, "error": {"reason": 3, "message": "…"}}
//
// Both sides are the same binary, so this format has no version and is no document. The readers throw JsonError.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/json.hpp"
#include "base/result.hpp"
#include "machine/machine.hpp"

namespace artune {

enum class RequestKind : std::uint8_t { topology, start, describe, verdicts, candidates, verify, time, time_overlap, limit, quit };

template <>
struct WordTable<RequestKind> {
  static constexpr std::array<Word<RequestKind>, 10> entries{{{RequestKind::topology, "topology"},
                                                             {RequestKind::start, "start"},
                                                             {RequestKind::describe, "describe"},
                                                             {RequestKind::verdicts, "verdicts"},
                                                             {RequestKind::candidates, "candidates"},
                                                             {RequestKind::verify, "verify"},
                                                             {RequestKind::time, "time"},
                                                             {RequestKind::time_overlap, "time-overlap"},
                                                             {RequestKind::limit, "limit"},
                                                             {RequestKind::quit, "quit"}}};
};

namespace wire {

Json to_json(const Candidate& candidate);
Json to_json(const Shape& shape);
Json to_json(const Outcome& outcome);
Json to_json(const Offer& offer);
Json to_json(const Verification& verification);
Json to_json(const TimeRequest& request);
Json to_json(const Timing& timing);
Json to_json(const OverlapRequest& request);
Json to_json(const OverlapSample& sample);
Json to_json(const OverlapTiming& timing);
Json to_json(const PairVerdict& verdict);
Json to_json(const Error& error);

Candidate candidate_from_json(const JsonReader& object);
Shape shape_from_json(const JsonReader& object);
Outcome outcome_from_json(const JsonReader& object);
Offer offer_from_json(const JsonReader& object);
Verification verification_from_json(const JsonReader& object);
TimeRequest time_request_from_json(const JsonReader& object);
Timing timing_from_json(const JsonReader& object);
OverlapRequest overlap_request_from_json(const JsonReader& object);
OverlapTiming overlap_timing_from_json(const JsonReader& object);
PairVerdict pair_verdict_from_json(const JsonReader& object);
Error error_from_json(const JsonReader& object);

template <typename T>
Json list_to_json(const std::vector<T>& items) {
  Json list = Json::array();
  for (const T& item : items) list.push_back(to_json(item));
  return list;
}

template <typename Read>
auto list_from_json(const JsonReader& list, Read read) {
  std::vector<decltype(read(list))> items;
  for (std::size_t i = 0; i < list.size(); ++i) items.push_back(read(list.at(i)));
  return items;
}

/// One line, newline included. Bytes that are no UTF-8 (a driver's message) become U+FFFD instead of an error.
std::string to_line(const Json& message);

}  // namespace wire
}  // namespace artune
