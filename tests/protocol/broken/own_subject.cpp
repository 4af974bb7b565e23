// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "broken/own_subject.hpp"

#include <algorithm>
#include <utility>

namespace artune::model {
namespace {

constexpr std::size_t kMaxBytes = 192;

template <typename Arguments>
Arguments with_call(Arguments arguments, const HostCall& call, int rank) {
  arguments.input = call.inputs[rank];
  arguments.output = call.outputs[rank];
  arguments.count = call.count;
  return arguments;
}

}  // namespace

OneShotArguments Place::one_shot() const { return with_call(subject.one_shot_[rank], call, rank); }
TwoShotArguments Place::two_shot() const { return with_call(subject.two_shot_[rank], call, rank); }
DirectArguments Place::direct() const {
  DirectArguments arguments = subject.direct_[rank];
  arguments.count = call.count;
  std::copy(call.inputs.begin(), call.inputs.end(), arguments.inputs);
  std::copy(call.outputs.begin(), call.outputs.end(), arguments.outputs);
  return arguments;
}
HierarchicalArguments Place::hierarchical() const { return with_call(subject.hierarchical_[rank], call, rank); }
const CopyWiring& Place::copies() const { return subject.copies_[rank]; }
std::uint64_t* Place::own_word() const { return reinterpret_cast<std::uint64_t*>(subject.words_[rank].data()) + lane.block; }

OwnSubject::OwnSubject(std::string name, CandidateId like, int ranks, std::uint64_t start_epoch, Body body)
    : Subject(std::move(name), ranks, kMaxBytes),
      layout_(slab_layout(like, kMaxBytes, ranks)),
      host_(layout_.host_bytes, 0),
      body_(std::move(body)) {
  const CandidateInfo& info = info_of(like);
  for (int rank = 0; rank < ranks; ++rank) {
    controls_.emplace_back(sizeof(Control), 0);
    words_.emplace_back(kMostModelBlocks * sizeof(std::uint64_t), 0);
    device_.emplace_back(layout_.device_bytes, info.protocol == Protocol::sentinel ? 0xff : 0);
    control(rank)->epoch = start_epoch;
    if (info_of(like).one_kernel()) control(rank)->ticket = first_ticket(start_epoch);
  }
  const Slabs slabs{.id = like,
                    .layout = layout_,
                    .ranks = ranks,
                    .device = [&](int rank) { return device_[rank].data(); },
                    .host = host_.data(),
                    .bounds =
                        [&](int rank) {
                          Bounds whole = bounds(rank);
                          whole.control = control(rank);
                          return whole;
                        }};
  for (int rank = 0; rank < ranks; ++rank) {
    if (info.staging == Staging::none) {
      direct_.push_back(wire_direct(slabs, rank));
    } else if (info.algorithm == Algorithm::hierarchical) {
      hierarchical_.push_back(wire_hierarchical(slabs, rank));
    } else if (info.algorithm == Algorithm::one_shot) {
      one_shot_.push_back(wire_one_shot(slabs, rank));
    } else if (info.algorithm == Algorithm::two_shot) {
      two_shot_.push_back(wire_two_shot(slabs, rank));
    } else {
      copies_.push_back(wire_copies(slabs, rank));
    }
  }
  shares_user_buffers = info.staging == Staging::none;
  whole_units = shares_user_buffers || info.algorithm == Algorithm::copies;
  may_be_in_place = !shares_user_buffers;
  if (info.algorithm == Algorithm::copies) most_blocks = 1;
}

void OwnSubject::run(const HostCall& call, int rank, int block) {
  const Lane lane{0, 1, static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(call.blocks)};
  body_({*this, call, rank, lane, load_entry(control(rank))});
}

void OwnSubject::share_with(Machine& machine) {
  machine.share("host", host_.data(), host_.bytes());
  for (int rank = 0; rank < ranks(); ++rank) {
    machine.share("control of rank " + std::to_string(rank), controls_[rank].data(), controls_[rank].bytes(), rank);
    machine.share("words of rank " + std::to_string(rank), words_[rank].data(), words_[rank].bytes(), rank);
    machine.share("slab of rank " + std::to_string(rank), device_[rank].data(), device_[rank].bytes());
  }
}

}  // namespace artune::model
