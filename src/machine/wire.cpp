// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "machine/wire.hpp"

#include <climits>

namespace artune::wire {
namespace {
constexpr std::int64_t kMostSamples = 10'000'000;
}

Json to_json(const Candidate& candidate) { return {{"name", candidate.name}, {"geometry", geometry_to_json(candidate.geometry)}}; }

Candidate candidate_from_json(const JsonReader& object) {
  return {object.at("name").string(), geometry_from_json(object.at("geometry"))};
}

Json to_json(const Shape& shape) {
  return {{"op", to_string(shape.op)},       {"dtype", to_string(shape.dtype)},   {"wire", to_string(shape.wire)},
          {"ranks", shape.ranks},            {"bytes", shape.bytes},              {"mode", to_string(shape.mode)},
          {"launch", to_string(shape.launch)}, {"load", to_string(shape.load)}, {"regime", to_string(shape.regime)}};
}

Shape shape_from_json(const JsonReader& object) {
  Shape shape;
  shape.op = object.at("op").word<Op>();
  shape.dtype = object.at("dtype").word<DType>();
  shape.wire = object.at("wire").word<DType>();
  shape.ranks = static_cast<int>(object.at("ranks").integer(1, 1024));
  shape.bytes = object.at("bytes").bytes();
  shape.mode = object.at("mode").word<Mode>();
  shape.launch = object.at("launch").word<Launch>();
  shape.load = object.at("load").word<Load>();
  shape.regime = object.at("regime").word<Regime>();
  return shape;
}

Json to_json(const Outcome& outcome) { return {{"kind", to_string(outcome.kind)}, {"detail", outcome.detail}}; }

Outcome outcome_from_json(const JsonReader& object) {
  return {object.at("kind").word<OutcomeKind>(), object.at("detail").string()};
}

Json to_json(const Offer& offer) { return {{"candidate", to_json(offer.candidate)}, {"unavailable", offer.unavailable}}; }

Offer offer_from_json(const JsonReader& object) {
  return {candidate_from_json(object.at("candidate")), object.at("unavailable").string()};
}

Json to_json(const Verification& verification) {
  return {{"outcome", to_json(verification.outcome)},
          {"checked", verification.checked},
          {"numerics", to_string(verification.numerics)}};
}

Verification verification_from_json(const JsonReader& object) {
  return {outcome_from_json(object.at("outcome")), object.at("checked").boolean(), object.at("numerics").word<Numerics>()};
}

Json to_json(const TimeRequest& request) {
  return {{"samples", request.samples}, {"batch", request.batch}, {"isolated", request.isolated}};
}

TimeRequest time_request_from_json(const JsonReader& object) {
  return {static_cast<int>(object.at("samples").integer(0, kMostSamples)),
          static_cast<int>(object.at("batch").integer(0, kMostSamples)), object.at("isolated").boolean()};
}

Json to_json(const Timing& timing) {
  return {{"outcome", to_json(timing.outcome)},
          {"batch", timing.batch},
          {"samples_us", timing.samples_us},
          {"isolated_us", timing.isolated_us},
          {"host_us", timing.host_us}};
}

Timing timing_from_json(const JsonReader& object) {
  const auto numbers = [](const JsonReader& list) { return list_from_json(list, [](const JsonReader& item) { return item.number(); }); };
  Timing timing;
  timing.outcome = outcome_from_json(object.at("outcome"));
  timing.batch = static_cast<int>(object.at("batch").integer(0, kMostSamples));
  timing.samples_us = list_from_json(object.at("samples_us"), numbers);
  timing.isolated_us = numbers(object.at("isolated_us"));
  timing.host_us = object.at("host_us").number();
  return timing;
}

Json to_json(const OverlapRequest& request) {
  return {{"samples", request.samples}, {"compute_us", request.compute_us}, {"order", to_string(request.order)}};
}

OverlapRequest overlap_request_from_json(const JsonReader& object) {
  return {static_cast<int>(object.at("samples").integer(0, kMostSamples)), object.at("compute_us").number(),
          object.at("order").word<LaunchOrder>()};
}

Json to_json(const OverlapSample& sample) {
  return {{"compute_idle_us", sample.compute_idle_us},
          {"compute_beside_us", sample.compute_beside_us},
          {"reduction_idle_us", sample.reduction_idle_us},
          {"reduction_beside_us", sample.reduction_beside_us},
          {"completed", sample.completed}};
}

Json to_json(const OverlapTiming& timing) {
  return {{"outcome", to_json(timing.outcome)}, {"batch", timing.batch}, {"samples", list_to_json(timing.samples)}};
}

OverlapTiming overlap_timing_from_json(const JsonReader& object) {
  OverlapTiming timing;
  timing.outcome = outcome_from_json(object.at("outcome"));
  timing.batch = static_cast<int>(object.at("batch").integer(0, kMostSamples));
  timing.samples = list_from_json(object.at("samples"), [](const JsonReader& sample) {
    return OverlapSample{sample.at("compute_idle_us").number(), sample.at("compute_beside_us").number(), sample.at("reduction_idle_us").number(),
                         sample.at("reduction_beside_us").number(), static_cast<int>(sample.at("completed").integer(0, kMostSamples))};
  });
  return timing;
}

Json to_json(const PairVerdict& verdict) {
  return {{"from", verdict.from},       {"to", verdict.to},         {"path", to_string(verdict.path)},
          {"verdict", verdict.verdict}, {"reason", verdict.reason}, {"one_way_us", verdict.one_way_us}};
}

PairVerdict pair_verdict_from_json(const JsonReader& object) {
  PairVerdict verdict;
  verdict.from = static_cast<int>(object.at("from").integer(0, INT_MAX));
  verdict.to = static_cast<int>(object.at("to").integer(0, INT_MAX));
  verdict.path = object.at("path").word<Path>();
  verdict.verdict = object.at("verdict").string();
  verdict.reason = object.at("reason").string();
  verdict.one_way_us = object.at("one_way_us").number();
  return verdict;
}

Json to_json(const Error& error) { return {{"reason", static_cast<int>(error.reason)}, {"message", error.message}}; }

Error error_from_json(const JsonReader& object) {
  return {static_cast<Reason>(object.at("reason").integer(0, static_cast<int>(Reason::internal))), object.at("message").string()};
}

std::string to_line(const Json& message) { return message.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace artune::wire
