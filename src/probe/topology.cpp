// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "probe/topology.hpp"

#include <algorithm>

namespace artune {
namespace {

constexpr int kMostIndex = 4096;

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json link_state_to_json(const LinkState& link) { return {{"generation", link.generation}, {"width", link.width}}; }

LinkState link_state_from_json(const JsonReader& link) {
  link.expect_keys({"generation", "width"});
  return {static_cast<int>(link.at("generation").integer(0, 99)), static_cast<int>(link.at("width").integer(0, 64))};
}

int index_of(const JsonReader& value) { return static_cast<int>(value.integer(0, kMostIndex)); }

std::vector<int> indices_from_json(const JsonReader& list) {
  std::vector<int> indices;
  for (std::size_t i = 0; i < list.size(); ++i) indices.push_back(index_of(list.at(i)));
  return indices;
}

std::vector<std::string> strings_from_json(const JsonReader& list) {
  std::vector<std::string> strings;
  for (std::size_t i = 0; i < list.size(); ++i) strings.push_back(list.at(i).string());
  return strings;
}

Json gpu_to_json(const ProbedGpu& gpu) {
  Json processes = Json::array();
  for (const auto& process : gpu.other_processes) {
    processes.push_back({{"pid", process.pid}, {"name", process.name}, {"memory_bytes", or_null(process.memory_bytes)}});
  }
  return {{"index", gpu.index},
          {"pci_address", gpu.pci_address},
          {"name", gpu.name},
          {"cuda_ordinal", or_null(gpu.cuda_ordinal)},
          {"display_active", or_null(gpu.display_active)},
          {"iommu_group_type", gpu.iommu_group_type},
          {"other_processes", processes}};
}

ProbedGpu gpu_from_json(const JsonReader& object) {
  object.expect_keys({"index", "pci_address", "name", "cuda_ordinal", "display_active", "iommu_group_type", "other_processes"});
  ProbedGpu gpu;
  gpu.index = index_of(object.at("index"));
  gpu.pci_address = object.at("pci_address").string();
  gpu.name = object.at("name").string();
  if (const auto ordinal = object.at("cuda_ordinal"); !ordinal.is_null()) gpu.cuda_ordinal = index_of(ordinal);
  if (const auto active = object.at("display_active"); !active.is_null()) gpu.display_active = active.boolean();
  gpu.iommu_group_type = object.at("iommu_group_type").string();
  const JsonReader processes = object.at("other_processes");
  for (std::size_t i = 0; i < processes.size(); ++i) {
    const JsonReader row = processes.at(i);
    row.expect_keys({"pid", "name", "memory_bytes"});
    OtherProcess process;
    process.pid = static_cast<unsigned>(row.at("pid").integer(0, 0xffffffff));
    process.name = row.at("name").string();
    if (const auto bytes = row.at("memory_bytes"); !bytes.is_null()) process.memory_bytes = bytes.bytes();
    gpu.other_processes.push_back(std::move(process));
  }
  return gpu;
}

Json link_to_json(const Link& link) {
  return {{"address", link.address},
          {"parent", link.parent},
          {"kind", to_string(link.kind)},
          {"vendor_device", link.vendor_device},
          {"name", link.name},
          {"gpus", link.gpus},
          {"now", link_state_to_json(link.now)},
          {"max", link_state_to_json(link.max)},
          {"acs_redirect", to_string(link.acs_redirect)}};
}

Link link_from_json(const JsonReader& object) {
  object.expect_keys({"address", "parent", "kind", "vendor_device", "name", "gpus", "now", "max", "acs_redirect"});
  Link link;
  link.address = object.at("address").string();
  link.parent = object.at("parent").string();
  link.kind = object.at("kind").word<LinkKind>();
  link.vendor_device = object.at("vendor_device").string();
  link.name = object.at("name").string();
  link.gpus = indices_from_json(object.at("gpus"));
  link.now = link_state_from_json(object.at("now"));
  link.max = link_state_from_json(object.at("max"));
  link.acs_redirect = object.at("acs_redirect").word<AcsRedirect>();
  return link;
}

Json pair_to_json(const Pair& pair) {
  return {{"from", pair.from},
          {"to", pair.to},
          {"level", to_string(pair.level)},
          {"access", or_null(pair.access)},
          {"performance_rank", or_null(pair.performance_rank)},
          {"native_atomics", or_null(pair.native_atomics)},
          {"nvml",
           {{"read", to_string(pair.nvml_read)},
            {"write", to_string(pair.nvml_write)},
            {"nvlink", to_string(pair.nvml_nvlink)},
            {"atomics", to_string(pair.nvml_atomics)}}},
          {"risks", pair.risks}};
}

Pair pair_from_json(const JsonReader& object) {
  object.expect_keys({"from", "to", "level", "access", "performance_rank", "native_atomics", "nvml", "risks"});
  Pair pair;
  pair.from = index_of(object.at("from"));
  pair.to = index_of(object.at("to"));
  pair.level = object.at("level").word<PeerLevel>();
  if (const auto access = object.at("access"); !access.is_null()) pair.access = access.boolean();
  if (const auto rank = object.at("performance_rank"); !rank.is_null())
    pair.performance_rank = static_cast<int>(rank.integer(-1000, 1000));
  if (const auto atomics = object.at("native_atomics"); !atomics.is_null()) pair.native_atomics = atomics.boolean();
  const JsonReader nvml = object.at("nvml");
  nvml.expect_keys({"read", "write", "nvlink", "atomics"});
  pair.nvml_read = nvml.at("read").word<P2pStatus>();
  pair.nvml_write = nvml.at("write").word<P2pStatus>();
  pair.nvml_nvlink = nvml.at("nvlink").word<P2pStatus>();
  pair.nvml_atomics = nvml.at("atomics").word<P2pStatus>();
  pair.risks = strings_from_json(object.at("risks"));
  return pair;
}

Json finding_to_json(const Finding& finding) {
  return {{"rule", finding.rule},         {"severity", finding.severity}, {"subjects", finding.subjects},
          {"evidence", finding.evidence}, {"meaning", finding.meaning},   {"remedy", finding.remedy},
          {"source", finding.source}};
}

Finding finding_from_json(const JsonReader& object) {
  object.expect_keys({"rule", "severity", "subjects", "evidence", "meaning", "remedy", "source"});
  Finding finding;
  finding.rule = object.at("rule").string();
  finding.severity = object.at("severity").string();
  if (finding.severity != "fault" && finding.severity != "warning" && finding.severity != "info") {
    object.at("severity").fail("'" + finding.severity + "' is none of fault, warning, info");
  }
  finding.subjects = strings_from_json(object.at("subjects"));
  finding.evidence = object.at("evidence").string();
  finding.meaning = object.at("meaning").string();
  finding.remedy = object.at("remedy").string();
  finding.source = object.at("source").string();
  return finding;
}

Json numa_to_json(const NumaNode& node) { return {{"node", node.node}, {"cpus", node.cpus}, {"gpus", node.gpus}}; }

NumaNode numa_from_json(const JsonReader& object) {
  object.expect_keys({"node", "cpus", "gpus"});
  return {index_of(object.at("node")), static_cast<int>(object.at("cpus").integer(0, 1 << 20)),
          indices_from_json(object.at("gpus"))};
}

template <typename T, typename Convert>
Json list_to_json(const std::vector<T>& items, Convert convert) {
  Json list = Json::array();
  for (const T& item : items) list.push_back(convert(item));
  return list;
}

template <typename T, typename Convert>
std::vector<T> list_from_json(const JsonReader& list, Convert convert) {
  std::vector<T> items;
  for (std::size_t i = 0; i < list.size(); ++i) items.push_back(convert(list.at(i)));
  return items;
}

/// Beyond the shape of single fields: every index and parent names something that is listed.
void expect_consistent(const JsonReader& document, const Topology& topology) {
  const auto known = [&](int index, const JsonReader& at) {
    if (topology.find_gpu(index) == nullptr) at.fail("names GPU " + std::to_string(index) + ", which is not listed under gpus");
  };
  if (topology.gpus.size() != topology.header.machine.gpus.size())
    document.at("gpus").fail("has another length than machine/gpus");
  for (std::size_t i = 0; i < topology.gpus.size(); ++i) {
    if (topology.gpus[i].index != topology.header.machine.gpus[i].index)
      document.at("gpus").at(i).fail("has another index than machine/gpus");
  }
  for (std::size_t i = 0; i < topology.pairs.size(); ++i) {
    const JsonReader row = document.at("pairs").at(i);
    known(topology.pairs[i].from, row.at("from"));
    known(topology.pairs[i].to, row.at("to"));
    if (topology.pairs[i].from == topology.pairs[i].to)
      row.fail("pairs GPU " + std::to_string(topology.pairs[i].to) + " with itself");
  }
  for (std::size_t i = 0; i < topology.links.size(); ++i) {
    const JsonReader row = document.at("links").at(i);
    for (const int index : topology.links[i].gpus) known(index, row.at("gpus"));
    // Parents follow their children, so that walking upwards always ends.
    const auto& parent = topology.links[i].parent;
    const auto later = topology.links.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    const bool listed = std::any_of(later, topology.links.end(), [&](const Link& link) { return link.address == parent; });
    if (!parent.empty() && !listed) row.at("parent").fail("'" + parent + "' is not listed further down");
  }
}

}  // namespace

const ProbedGpu* Topology::find_gpu(int index) const {
  const auto it = std::find_if(gpus.begin(), gpus.end(), [&](const ProbedGpu& gpu) { return gpu.index == index; });
  return it == gpus.end() ? nullptr : &*it;
}

const Pair* Topology::find_pair(int from, int to) const {
  const auto it = std::find_if(pairs.begin(), pairs.end(), [&](const Pair& pair) { return pair.from == from && pair.to == to; });
  return it == pairs.end() ? nullptr : &*it;
}

const Link* Topology::find_link(const std::string& address) const {
  const auto it = std::find_if(links.begin(), links.end(), [&](const Link& link) { return link.address == address; });
  return it == links.end() ? nullptr : &*it;
}

std::vector<const Link*> Topology::path_of(int index) const {
  std::vector<const Link*> path;
  const ProbedGpu* gpu = find_gpu(index);
  for (const Link* link = gpu == nullptr ? nullptr : find_link(gpu->pci_address); link != nullptr;
       link = find_link(link->parent)) {
    path.push_back(link);
  }
  return path;
}

Topology restricted_to(const Topology& topology, const std::vector<int>& gpus) {
  const auto is_kept = [&](int index) { return std::find(gpus.begin(), gpus.end(), index) != gpus.end(); };
  const auto drop_others = [&](std::vector<int>& indices) { std::erase_if(indices, [&](int index) { return !is_kept(index); }); };
  Topology rest = topology;
  rest.header.machine.gpus.clear();
  rest.gpus.clear();
  for (const int index : gpus) {
    for (std::size_t i = 0; i < topology.gpus.size(); ++i) {
      if (topology.gpus[i].index != index) continue;
      rest.header.machine.gpus.push_back(topology.header.machine.gpus[i]);
      rest.gpus.push_back(topology.gpus[i]);
    }
  }
  for (Link& link : rest.links) drop_others(link.gpus);
  std::erase_if(rest.links, [](const Link& link) { return link.gpus.empty(); });
  for (NumaNode& node : rest.numa) drop_others(node.gpus);
  std::erase_if(rest.pairs, [&](const Pair& pair) { return !is_kept(pair.from) || !is_kept(pair.to); });
  return rest;
}

Json topology_to_json(const Topology& topology) {
  Json json = header_to_json(topology.header);
  json["gpus"] = list_to_json(topology.gpus, gpu_to_json);
  json["links"] = list_to_json(topology.links, link_to_json);
  json["pairs"] = list_to_json(topology.pairs, pair_to_json);
  json["packages"] = topology.packages;
  json["numa"] = list_to_json(topology.numa, numa_to_json);
  json["root_complex"] = {{"host_bridge", topology.host_bridge}, {"intel_client", topology.intel_client}};
  json["findings"] = list_to_json(topology.findings, finding_to_json);
  return json;
}

Json topology_to_wire_json(const Topology& topology) {
  Json json = topology_to_json(topology);
  Json uuids = Json::array();
  for (const auto& gpu : topology.gpus) uuids.push_back(gpu.uuid);
  json["info"] = {{"uuids", uuids}};
  return json;
}

Result<Topology> topology_from_json(const Json& document, const std::string& name) {
  try {
    const JsonReader reader(document, name);
    Topology topology;
    topology.header = header_from_json(reader, kProbeKind, kProbeVersion);
    reader.expect_keys({ARTUNE_HEADER_KEYS, "gpus", "links", "pairs", "packages", "numa", "root_complex", "findings"});
    topology.gpus = list_from_json<ProbedGpu>(reader.at("gpus"), gpu_from_json);
    topology.links = list_from_json<Link>(reader.at("links"), link_from_json);
    topology.pairs = list_from_json<Pair>(reader.at("pairs"), pair_from_json);
    topology.packages = static_cast<int>(reader.at("packages").integer(0, kMostIndex));
    topology.numa = list_from_json<NumaNode>(reader.at("numa"), numa_from_json);
    const JsonReader root_complex = reader.at("root_complex");
    root_complex.expect_keys({"host_bridge", "intel_client"});
    topology.host_bridge = root_complex.at("host_bridge").string();
    topology.intel_client = root_complex.at("intel_client").boolean();
    topology.findings = list_from_json<Finding>(reader.at("findings"), finding_from_json);
    expect_consistent(reader, topology);
    if (const auto info = reader.find("info")) {
      // Ignorable by definition: taken when it has the form that a worker gives it, passed over otherwise.
      const auto uuids = info->raw().is_object() ? info->find("uuids") : std::nullopt;
      if (uuids && uuids->raw().is_array() && uuids->size() == topology.gpus.size()) {
        for (std::size_t i = 0; i < topology.gpus.size(); ++i) {
          if (uuids->at(i).raw().is_string()) topology.gpus[i].uuid = uuids->at(i).string();
        }
      }
    }
    return topology;
  } catch (const JsonError& error) {
    return Error{Reason::unreadable_input, error.what()};
  }
}

std::string topology_to_text(const Topology& topology) {
  const Json json = topology_to_json(topology);
  std::string text = "{";
  const char* comma = "\n";
  for (const auto& [key, value] : json.items()) {
    text += comma + Json(key).dump() + ": ";
    comma = ",\n";
    if (value.is_array() && !value.empty()) {
      const char* between = "[\n  ";
      for (const auto& row : value) {
        text += between + row.dump();
        between = ",\n  ";
      }
      text += "]";
    } else {
      text += value.is_object() ? value.dump(2) : value.dump();
    }
  }
  return text + "\n}\n";
}

}  // namespace artune
