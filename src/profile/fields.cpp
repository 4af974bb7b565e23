// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "profile/fields.hpp"

#include <algorithm>

#include "paths/menu.hpp"

namespace artune {
namespace {

std::string menu_names() {
  std::string names;
  for (const CandidateInfo& info : menu()) names += (names.empty() ? "" : ", ") + std::string(info.name);
  return names;
}

/// Which fields a candidate's geometry has: asked of the menu itself, so that a new candidate needs no rule here.
Geometry geometry_shape(const CandidateInfo& info) {
  constexpr std::size_t typical_bytes = std::size_t{1} << 20;
  return info.geometries({.ranks = 2, .multiprocessors = 64, .bytes = typical_bytes, .peer_access = true, .nccl = true}).front();
}

std::string geometry_problem(const CandidateInfo& info, const Geometry& geometry) {
  const Geometry shape = geometry_shape(info);
  const auto differs = [&](std::string_view field, auto wanted, auto given) -> std::string {
    if ((wanted > 0) == (given > 0)) return {};
    return std::string(info.name) + (wanted > 0 ? " needs '" : " has no '") + std::string(field) + "'";
  };
  for (const std::string& problem :
       {differs("blocks", shape.blocks, geometry.blocks), differs("threads", shape.threads, geometry.threads),
        differs("chunk_bytes", shape.chunk_bytes, geometry.chunk_bytes)}) {
    if (!problem.empty()) return problem;
  }
  if (geometry.max_ctas > 0 && shape.max_ctas == 0) return std::string(info.name) + " has no 'max_ctas'";
  if (geometry.threads % 32 != 0) return "threads " + std::to_string(geometry.threads) + " is not a multiple of 32";
  return {};
}

}  // namespace

std::string read_one_of(const JsonReader& value, std::span<const std::string_view> words) {
  std::string word = value.string();
  if (std::find(words.begin(), words.end(), word) != words.end()) return word;
  std::string list;
  for (const std::string_view known : words) list += (list.empty() ? "" : ", ") + std::string(known);
  value.fail("'" + word + "' is none of " + list);
}

std::string read_candidate_name(const JsonReader& name) {
  std::string text = name.string();
  if (find_candidate(text) == nullptr) name.fail("unknown candidate '" + text + "', known are " + menu_names());
  return text;
}

Candidate read_candidate(const JsonReader& name, const Geometry& geometry) {
  Candidate candidate{read_candidate_name(name), geometry};
  const std::string problem = geometry_problem(*find_candidate(candidate.name), geometry);
  if (!problem.empty()) name.fail("bad geometry: " + problem);
  return candidate;
}

void append_key(Json& object, const TableKey& key) {
  object["op"] = to_string(key.op);
  object["dtype"] = to_string(key.dtype);
  object["wire"] = to_string(key.wire);
  object["ranks"] = key.ranks;
  object["mode"] = to_string(key.mode);
  object["launch"] = to_string(key.launch);
  object["load"] = to_string(key.load);
}

TableKey read_key(const JsonReader& object) {
  TableKey key;
  key.op = object.at("op").word<Op>();
  key.dtype = object.at("dtype").word<DType>();
  key.wire = object.at("wire").word<DType>();
  if (!is_wire_of(key.dtype, key.wire)) {
    object.at("wire").fail("there is no " + std::string(to_string(key.dtype)) + " as " + std::string(to_string(key.wire)) + " on the wire");
  }
  key.ranks = static_cast<int>(object.at("ranks").integer(2, kMostRanks));
  key.mode = object.at("mode").word<Mode>();
  key.launch = object.at("launch").word<Launch>();
  key.load = object.at("load").word<Load>();
  return key;
}

void expect_group(const JsonReader& document, const DocumentHeader& header) {
  const JsonReader world = document.at("world");
  const JsonReader devices = world.at("devices");
  if (header.world->devices.empty()) devices.fail("names no GPU");
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const int index = header.world->devices[i];
    const auto& gpus = header.machine.gpus;
    if (std::none_of(gpus.begin(), gpus.end(), [&](const GpuFacts& gpu) { return gpu.index == index; })) {
      devices.at(i).fail("GPU " + std::to_string(index) + " isn't among the machine's GPUs");
    }
  }
  if (header.shared_gpu != (header.world->ranks_per_gpu > 1)) {
    document.at("shared_gpu").fail("contradicts ranks_per_gpu " + std::to_string(header.world->ranks_per_gpu));
  }
}

}  // namespace artune
