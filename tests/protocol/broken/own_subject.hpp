// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// Memory and addresses of one family, as HostFamily has them, around a body of the test's own.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/wiring.hpp"
#include "model/explore.hpp"
#include "protocol/lane.cuh"
#include "protocol/memory.cuh"

namespace artune::model {

class OwnSubject;

/// One block of one call. The counterpart of HostFamily::run_as() for one protocol; f32.
struct Place {
  OwnSubject& subject;
  const HostCall& call;
  int rank;
  Lane lane;
  Entry entry;

  OneShotArguments one_shot() const;
  TwoShotArguments two_shot() const;
  DirectArguments direct() const;
  HierarchicalArguments hierarchical() const;
  const CopyWiring& copies() const;
  /// A word that this block of this rank keeps from call to call, 0 at first.
  std::uint64_t* own_word() const;
};

class OwnSubject final : public Subject {
 public:
  using Body = std::function<void(const Place&)>;

  OwnSubject(std::string name, CandidateId like, int ranks, std::uint64_t start_epoch, Body body);
  void run(const HostCall& call, int rank, int block) override;
  void share_with(Machine& machine) override;

  const SlabLayout& layout() const { return layout_; }
  char* slab(int rank) { return device_[rank].data(); }

 private:
  friend struct Place;
  Control* control(int rank) { return reinterpret_cast<Control*>(controls_[rank].data()); }

  SlabLayout layout_;
  std::vector<HostMemory> controls_, words_, device_;
  HostMemory host_;
  std::vector<OneShotArguments> one_shot_;
  std::vector<TwoShotArguments> two_shot_;
  std::vector<DirectArguments> direct_;
  std::vector<HierarchicalArguments> hierarchical_;
  std::vector<CopyWiring> copies_;
  Body body_;
};

}  // namespace artune::model
