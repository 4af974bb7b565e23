// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The strict reader of rig files. What a schema can express stands in rig.schema.json too; the rest (ids that
// exist, sources that exist, a tree) is checked at the end.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "machine/rig.hpp"

namespace artune {
namespace {

constexpr std::string_view kKind = "ar-tune/rig";

class RigReader {
 public:
  explicit RigReader(const JsonReader& document) : document_(document) {}

  Rig read() {
    document_.expect_keys({"kind", "version", "name", "description", "source", "sources", "sockets", "root_ports", "switches",
                           "gpus", "links", "peer_access", "faults", "launch", "kernels", "copies", "nccl", "noise"});
    const std::string kind = document_.at("kind").string();
    if (kind != kKind) document_.at("kind").fail("is '" + kind + "', expected '" + std::string(kKind) + "'");
    const std::int64_t version = document_.at("version").integer(1, 1'000'000);
    if (version > kRigVersion) {
      document_.at("version").fail("is " + std::to_string(version) + ", this ar-tune reads up to " + std::to_string(kRigVersion));
    }
    rig_.name = text(document_.at("name"));
    rig_.description = text(document_.at("description"));
    read_sources(document_.at("sources"));
    rig_.source = source_of(document_);
    read_nodes();
    for_each("links", [&](const JsonReader& link) { rig_.links.push_back(read_link(link)); });
    for_each("peer_access", [&](const JsonReader& rule) { rig_.peer_access.push_back(read_rule(rule)); });
    for_each("faults", [&](const JsonReader& fault) { rig_.faults.push_back(read_fault(fault)); });
    read_constants();
    check_tree();
    return std::move(rig_);
  }

 private:
  template <typename Read>
  void for_each(std::string_view key, Read read) {
    const JsonReader list = document_.at(key);
    for (std::size_t i = 0; i < list.size(); ++i) read(list.at(i));
  }

  static std::string text(const JsonReader& value) {
    std::string read = value.string();
    if (read.empty()) value.fail("is empty");
    return read;
  }

  void read_sources(const JsonReader& object) {
    if (!object.raw().is_object()) object.fail("expected an object");
    for (const auto& [key, unused] : object.raw().items()) rig_.sources.push_back({key, text(object.at(key))});
  }

  std::string source_of(const JsonReader& object) const {
    const JsonReader source = object.at("source");
    std::string key = source.string();
    for (const RigSource& known : rig_.sources) {
      if (known.key == key) return key;
    }
    source.fail("'" + key + "' is no key of /sources");
  }

  Sourced sourced(const JsonReader& object, double low, double high) const {
    object.expect_keys({"value", "source"});
    const double value = object.at("value").number();
    if (value < low || value > high) {
      object.at("value").fail("is outside " + std::to_string(low) + ".." + std::to_string(high));
    }
    return {value, source_of(object)};
  }
  /// Bandwidths: never zero, a link without bandwidth is no link.
  Sourced gb_per_s(const JsonReader& object) const { return sourced(object, 0.001, 100'000); }
  Sourced us(const JsonReader& object) const { return sourced(object, 0, 1'000'000); }
  Sourced fraction(const JsonReader& object) const { return sourced(object, 0.001, 1); }

  std::optional<Sourced> optional_us(const JsonReader& parent, std::string_view key) const {
    const auto found = parent.find(key);
    return found ? std::optional(us(*found)) : std::nullopt;
  }

  std::string new_id(const JsonReader& object) {
    const JsonReader id = object.at("id");
    std::string name = text(id);
    if (name.front() == '*') id.fail("'*' means every GPU and can't start an id");
    if (!ids_.emplace(name, ids_.size()).second) id.fail("'" + name + "' is used twice");
    return name;
  }

  std::string known_id(const JsonReader& value, bool gpu_only) const {
    std::string name = value.string();
    const bool known = gpu_only ? gpu_ids_.contains(name) : ids_.contains(name);
    if (!known)
      value.fail("there is no " + std::string(gpu_only ? "GPU" : "socket, root port, switch or GPU") + " '" + name + "'");
    return name;
  }

  void read_nodes() {
    for_each("sockets", [&](const JsonReader& socket) {
      socket.expect_keys({"id", "numa_node", "memory_gb_per_s"});
      rig_.sockets.push_back(
          {new_id(socket), static_cast<int>(socket.at("numa_node").integer(0, 1023)), gb_per_s(socket.at("memory_gb_per_s"))});
    });
    if (rig_.sockets.empty()) document_.at("sockets").fail("is empty");
    for_each("root_ports", [&](const JsonReader& port) {
      port.expect_keys({"id", "socket"});
      const std::string id = new_id(port);
      const std::string socket = port.at("socket").string();
      if (std::none_of(rig_.sockets.begin(), rig_.sockets.end(), [&](const RigSocket& known) { return known.id == socket; })) {
        port.at("socket").fail("there is no socket '" + socket + "'");
      }
      rig_.root_ports.push_back({id, socket});
    });
    for_each("switches", [&](const JsonReader& item) {
      item.expect_keys({"id"});
      rig_.switches.push_back({new_id(item)});
    });
    for_each("gpus", [&](const JsonReader& gpu) { rig_.gpus.push_back(read_gpu(gpu)); });
    if (rig_.gpus.empty()) document_.at("gpus").fail("is empty");
    if (rig_.gpus.size() > kMaxRigGpus) document_.at("gpus").fail("has more than " + std::to_string(kMaxRigGpus) + " GPUs");
  }

  RigGpu read_gpu(const JsonReader& object) {
    object.expect_keys({"id", "name", "pci_address", "memory_bytes", "bar1_bytes", "l2_bytes", "multiprocessors",
                        "compute_capability", "power_limit_w", "memory_gb_per_s", "source"});
    RigGpu gpu;
    gpu.id = new_id(object);
    gpu_ids_.insert(gpu.id);
    gpu.name = text(object.at("name"));
    gpu.pci_address = text(object.at("pci_address"));
    gpu.memory_bytes = object.at("memory_bytes").bytes();
    gpu.bar1_bytes = object.at("bar1_bytes").bytes();
    gpu.l2_bytes = object.at("l2_bytes").bytes();
    gpu.multiprocessors = static_cast<int>(object.at("multiprocessors").integer(1, 100'000));
    gpu.compute_capability = text(object.at("compute_capability"));
    gpu.power_limit_w = object.at("power_limit_w").number();
    gpu.memory_gb_per_s = object.at("memory_gb_per_s").number();
    if (gpu.memory_gb_per_s <= 0) object.at("memory_gb_per_s").fail("is not positive");
    gpu.source = source_of(object);
    return gpu;
  }

  RigLink read_link(const JsonReader& object) const {
    object.expect_keys({"from", "to", "generation", "width", "gb_per_s", "reverse_gb_per_s", "latency_us"});
    RigLink link;
    link.from = known_id(object.at("from"), false);
    link.to = known_id(object.at("to"), false);
    link.generation = static_cast<int>(object.at("generation").integer(0, 9));
    link.width = static_cast<int>(object.at("width").integer(0, 64));
    link.gb_per_s = gb_per_s(object.at("gb_per_s"));
    if (const auto reverse = object.find("reverse_gb_per_s")) link.reverse_gb_per_s = gb_per_s(*reverse);
    link.latency_us = us(object.at("latency_us"));
    return link;
  }

  RigPeerRule read_rule(const JsonReader& object) const {
    object.expect_keys({"between", "allowed", "source"});
    const JsonReader between = object.at("between");
    if (between.size() != 2) between.fail("expected two GPU ids, or \"*\"");
    const auto side = [&](std::size_t i) {
      return between.at(i).string() == "*" ? std::string("*") : known_id(between.at(i), true);
    };
    return {side(0), side(1), object.at("allowed").boolean(), source_of(object)};
  }

  RigFault read_fault(const JsonReader& object) const {
    object.expect_keys({"name", "kind", "from", "to", "source"});
    RigFault fault{text(object.at("name")), object.at("kind").word<RigFaultKind>(), known_id(object.at("from"), true),
                   known_id(object.at("to"), true), source_of(object)};
    if (fault.from == fault.to) object.at("to").fail("is the same GPU as `from`");
    return fault;
  }

  void read_constants() {
    const JsonReader launch = document_.at("launch");
    launch.expect_keys({"graph_us", "eager_call_us", "nccl_eager_us"});
    rig_.launch = {us(launch.at("graph_us")), us(launch.at("eager_call_us")), us(launch.at("nccl_eager_us"))};
    const JsonReader kernels = document_.at("kernels");
    kernels.expect_keys({"one_shot_us", "flag_us", "store_fraction", "load_fraction", "block_gb_per_s"});
    rig_.kernels = {us(kernels.at("one_shot_us")), us(kernels.at("flag_us")), fraction(kernels.at("store_fraction")),
                    fraction(kernels.at("load_fraction")), gb_per_s(kernels.at("block_gb_per_s"))};
    const JsonReader copies = document_.at("copies");
    copies.expect_keys({"step_us", "staged_us", "issue_us"});
    rig_.copies = {us(copies.at("step_us")), us(copies.at("staged_us")), us(copies.at("issue_us"))};
    const JsonReader nccl = document_.at("nccl");
    nccl.expect_keys({"available", "transport", "source", "ring_fraction", "base_ll_us", "base_simple_us", "hop_ll_us",
                      "hop_simple_us", "ll_bandwidth_ratio"});
    rig_.nccl.available = nccl.at("available").boolean();
    rig_.nccl.transport = nccl.at("transport").word<NcclTransport>();
    rig_.nccl.source = source_of(nccl);
    rig_.nccl.ring_fraction = fraction(nccl.at("ring_fraction"));
    rig_.nccl.base_ll_us = optional_us(nccl, "base_ll_us");
    rig_.nccl.base_simple_us = optional_us(nccl, "base_simple_us");
    rig_.nccl.hop_ll_us = optional_us(nccl, "hop_ll_us");
    rig_.nccl.hop_simple_us = optional_us(nccl, "hop_simple_us");
    if (const auto ratio = nccl.find("ll_bandwidth_ratio")) rig_.nccl.ll_bandwidth_ratio = fraction(*ratio);
    if (const auto noise = document_.find("noise")) rig_.noise = sourced(*noise, 0, 1);
  }

  /// Every node reachable, no link that closes a circle: routes are then unique, as they are in a PCIe tree.
  void check_tree() const {
    std::vector<std::size_t> root(ids_.size());
    std::iota(root.begin(), root.end(), std::size_t{0});
    const auto find = [&](std::size_t node) {
      while (root[node] != node) node = root[node];
      return node;
    };
    for (const RigRootPort& port : rig_.root_ports) root[find(ids_.at(port.id))] = find(ids_.at(port.socket));
    for (std::size_t i = 0; i < rig_.links.size(); ++i) {
      const std::size_t a = find(ids_.at(rig_.links[i].from));
      const std::size_t b = find(ids_.at(rig_.links[i].to));
      if (a == b) document_.at("links").at(i).fail("closes a circle: a rig is a tree");
      root[a] = b;
    }
    for (std::size_t i = 0; i < rig_.gpus.size(); ++i) {
      if (find(ids_.at(rig_.gpus[i].id)) != find(ids_.at(rig_.sockets[0].id))) {
        document_.at("gpus").at(i).fail("'" + rig_.gpus[i].id + "' is not connected to socket '" + rig_.sockets[0].id + "'");
      }
    }
  }

  JsonReader document_;
  Rig rig_;
  std::map<std::string, std::size_t> ids_;
  std::set<std::string> gpu_ids_;
};

}  // namespace

Result<Rig> rig_from_json(const Json& document, const std::string& name) {
  try {
    return RigReader(JsonReader(document, name)).read();
  } catch (const JsonError& error) {
    return Error{Reason::unreadable_input, error.what()};
  }
}

}  // namespace artune
