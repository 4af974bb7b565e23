// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "base/document.hpp"

#include <chrono>
#include <climits>
#include <ctime>

#include "base/candidate.hpp"
#include "base/version.hpp"

namespace artune {
namespace {

Json link_to_json(const LinkState& link) { return {{"generation", link.generation}, {"width", link.width}}; }

LinkState link_from_json(const JsonReader& link) {
  link.expect_keys({"generation", "width"});
  return {static_cast<int>(link.at("generation").integer(0, 99)), static_cast<int>(link.at("width").integer(0, 64))};
}

Json gpu_to_json(const GpuFacts& gpu) {
  return {{"index", gpu.index},
          {"name", gpu.name},
          {"pci_address", gpu.pci_address},
          {"uuid_sha256", gpu.uuid_sha256},
          {"memory_bytes", gpu.memory_bytes},
          {"bar1_bytes", gpu.bar1_bytes},
          {"l2_bytes", gpu.l2_bytes},
          {"compute_capability", gpu.compute_capability},
          {"multiprocessors", gpu.multiprocessors},
          {"link_now", link_to_json(gpu.link_now)},
          {"link_max", link_to_json(gpu.link_max)},
          {"numa_node", gpu.numa_node},
          {"vbios", gpu.vbios},
          {"power_limit_w", gpu.power_limit_w}};
}

GpuFacts gpu_from_json(const JsonReader& object) {
  object.expect_keys({"index", "name", "pci_address", "uuid_sha256", "memory_bytes", "bar1_bytes", "l2_bytes", "compute_capability",
                      "multiprocessors", "link_now", "link_max", "numa_node", "vbios", "power_limit_w"});
  GpuFacts gpu;
  gpu.index = static_cast<int>(object.at("index").integer(0, 4096));
  gpu.name = object.at("name").string();
  gpu.pci_address = object.at("pci_address").string();
  gpu.uuid_sha256 = object.at("uuid_sha256").string();
  gpu.memory_bytes = object.at("memory_bytes").bytes();
  gpu.bar1_bytes = object.at("bar1_bytes").bytes();
  gpu.l2_bytes = object.at("l2_bytes").bytes();
  gpu.compute_capability = object.at("compute_capability").string();
  gpu.multiprocessors = static_cast<int>(object.at("multiprocessors").integer(0, 100000));
  gpu.link_now = link_from_json(object.at("link_now"));
  gpu.link_max = link_from_json(object.at("link_max"));
  gpu.numa_node = static_cast<int>(object.at("numa_node").integer(-1, 4096));
  gpu.vbios = object.at("vbios").string();
  gpu.power_limit_w = object.at("power_limit_w").number();
  return gpu;
}

Json machine_to_json(const MachineFacts& machine) {
  Json gpus = Json::array();
  for (const auto& gpu : machine.gpus) gpus.push_back(gpu_to_json(gpu));
  return {{"gpus", gpus},
          {"driver", machine.driver},
          {"cuda_driver", machine.cuda_driver},
          {"cuda_runtime", machine.cuda_runtime},
          {"nccl_version", machine.nccl_version},
          {"nccl_file", machine.nccl_file},
          {"kernel", machine.kernel},
          {"bios", machine.bios},
          {"iommu_mode", machine.iommu_mode},
          {"registry_dwords", machine.registry_dwords},
          {"boot_switches", machine.boot_switches},
          {"numa_nodes", machine.numa_nodes},
          {"container", machine.container},
          {"vm", machine.vm}};
}

MachineFacts machine_from_json(const JsonReader& object) {
  object.expect_keys({"gpus", "driver", "cuda_driver", "cuda_runtime", "nccl_version", "nccl_file", "kernel", "bios", "iommu_mode",
                      "registry_dwords", "boot_switches", "numa_nodes", "container", "vm"});
  MachineFacts machine;
  const JsonReader gpus = object.at("gpus");
  for (std::size_t i = 0; i < gpus.size(); ++i) machine.gpus.push_back(gpu_from_json(gpus.at(i)));
  machine.driver = object.at("driver").string();
  machine.cuda_driver = object.at("cuda_driver").string();
  machine.cuda_runtime = object.at("cuda_runtime").string();
  machine.nccl_version = object.at("nccl_version").string();
  machine.nccl_file = object.at("nccl_file").string();
  machine.kernel = object.at("kernel").string();
  machine.bios = object.at("bios").string();
  machine.iommu_mode = object.at("iommu_mode").string();
  machine.registry_dwords = object.at("registry_dwords").string();
  machine.boot_switches = object.at("boot_switches").string();
  machine.numa_nodes = static_cast<int>(object.at("numa_nodes").integer(0, 4096));
  machine.container = object.at("container").string();
  machine.vm = object.at("vm").string();
  return machine;
}

World world_from_json(const JsonReader& object) {
  object.expect_keys({"devices", "ranks_per_gpu", "launch"});
  World world;
  const JsonReader devices = object.at("devices");
  for (std::size_t i = 0; i < devices.size(); ++i) world.devices.push_back(static_cast<int>(devices.at(i).integer(0, 4096)));
  world.ranks_per_gpu = static_cast<int>(object.at("ranks_per_gpu").integer(1, 64));
  world.launch = object.at("launch").word<Launch>();
  return world;
}

}  // namespace

Json header_to_json(const DocumentHeader& header) {
  Json json = {{"kind", header.kind},           {"version", header.version},       {"tool", header.tool},
               {"created", header.created},     {"simulated", header.simulated},   {"shared_gpu", header.shared_gpu},
               {"machine", machine_to_json(header.machine)}};
  if (header.world) {
    json["world"] = {{"devices", header.world->devices},
                     {"ranks_per_gpu", header.world->ranks_per_gpu},
                     {"launch", to_string(header.world->launch)}};
  }
  return json;
}

DocumentHeader header_from_json(const JsonReader& document, std::string_view kind, int newest_version) {
  DocumentHeader header;
  header.kind = document.at("kind").string();
  if (header.kind != kind) document.at("kind").fail("is '" + header.kind + "', expected '" + std::string(kind) + "'");
  const JsonReader version = document.at("version");
  header.version = static_cast<int>(version.integer(1, INT_MAX));
  if (header.version > newest_version) {
    version.fail("is " + std::to_string(header.version) + ", this " + tool_name() + " reads up to " + std::to_string(newest_version) +
                 "; update ar-tune or tune again");
  }
  header.tool = document.at("tool").string();
  header.created = document.at("created").string();
  header.simulated = document.at("simulated").boolean();
  header.shared_gpu = document.at("shared_gpu").boolean();
  header.machine = machine_from_json(document.at("machine"));
  if (const auto world = document.find("world")) header.world = world_from_json(*world);
  return header;
}

Json geometry_to_json(const Geometry& geometry) {
  Json json = Json::object();
  if (geometry.blocks > 0) json["blocks"] = geometry.blocks;
  if (geometry.threads > 0) json["threads"] = geometry.threads;
  if (geometry.max_ctas > 0) json["max_ctas"] = geometry.max_ctas;
  if (geometry.chunk_bytes > 0) json["chunk_bytes"] = geometry.chunk_bytes;
  return json;
}

Geometry geometry_from_json(const JsonReader& object) {
  object.expect_keys({"blocks", "threads", "max_ctas", "chunk_bytes"});
  Geometry geometry;
  if (const auto blocks = object.find("blocks")) geometry.blocks = static_cast<int>(blocks->integer(1, 65535));
  if (const auto threads = object.find("threads")) geometry.threads = static_cast<int>(threads->integer(32, 1024));
  if (const auto max_ctas = object.find("max_ctas")) geometry.max_ctas = static_cast<int>(max_ctas->integer(1, 1024));
  if (const auto chunk = object.find("chunk_bytes")) geometry.chunk_bytes = static_cast<std::size_t>(chunk->integer(1, INT_MAX));
  return geometry;
}

std::string now_rfc3339() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[sizeof "2026-12-01T04:39:15Z"];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

std::string tool_name() { return std::string("ar-tune ") + kVersion; }

}  // namespace artune
