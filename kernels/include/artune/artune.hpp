// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// The C interface as C++: owners and exceptions. Header only.
//
//   artune::Communicators comms({0, 1});
//   comms.all_reduce(in, out, count, artuneBfloat16, streams);      // all ranks, from one thread
//
//   artuneConfig_t config = ARTUNE_CONFIG_INITIALIZER;
//   config.bf16Wire = 1;                                            // f32 may go over the links as bf16
//   artune::Communicators lossy({0, 1}, &config);
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "artune/artune.h"

namespace artune {

class CallError : public std::runtime_error {
 public:
  CallError(artuneResult_t code, const char* call)
      : std::runtime_error(std::string(call) + ": " + artuneGetErrorString(code) + ": " + artuneGetLastError()), code_(code) {}
  artuneResult_t code() const { return code_; }

 private:
  artuneResult_t code_;
};

inline void check(artuneResult_t result, const char* call) {
  if (result != artuneSuccess) throw CallError(result, call);
}

/// The communicators of all ranks of one process.
class Communicators {
 public:
  explicit Communicators(const std::vector<int>& devices, const artuneConfig_t* config = nullptr) : comms_(devices.size()) {
    check(artuneCommInitAll(comms_.data(), static_cast<int>(devices.size()), devices.data(), config), "artuneCommInitAll");
  }
  Communicators(Communicators&& other) noexcept : comms_(std::exchange(other.comms_, {})) {}
  Communicators& operator=(Communicators&&) = delete;
  ~Communicators() {
    for (artuneComm_t comm : comms_) artuneCommDestroy(comm);
  }

  int ranks() const { return static_cast<int>(comms_.size()); }
  artuneComm_t operator[](int rank) const { return comms_[static_cast<std::size_t>(rank)]; }

  /// One element of each vector per rank; see artuneAllReduce().
  void all_reduce(const std::vector<const void*>& send, const std::vector<void*>& receive, std::size_t count, artuneDataType_t type,
                  const std::vector<cudaStream_t>& streams) const {
    check(artuneGroupStart(), "artuneGroupStart");
    for (std::size_t rank = 0; rank < comms_.size(); ++rank) {
      check(artuneAllReduce(send[rank], receive[rank], count, type, artuneSum, comms_[rank], streams[rank]), "artuneAllReduce");
    }
    check(artuneGroupEnd(), "artuneGroupEnd");
  }

  /// Buffers of one rank; see artuneAllReduceRMSNorm().
  struct NormBuffers {
    const void* input;
    const void* residual;
    const void* weight;
    void* output;
    void* residual_out;
  };
  /// One element of each vector per rank. `flags`: of artuneNormFlags_t.
  void all_reduce_rms_norm(const std::vector<NormBuffers>& buffers, std::size_t rows, std::size_t hidden, float eps, unsigned flags,
                           artuneDataType_t type, const std::vector<cudaStream_t>& streams) const {
    check(artuneGroupStart(), "artuneGroupStart");
    for (std::size_t rank = 0; rank < comms_.size(); ++rank) {
      const NormBuffers& mine = buffers[rank];
      check(artuneAllReduceRMSNorm(mine.input, mine.residual, mine.weight, mine.output, mine.residual_out, rows, hidden, eps, flags, type,
                                   comms_[rank], streams[rank]),
            "artuneAllReduceRMSNorm");
    }
    check(artuneGroupEnd(), "artuneGroupEnd");
  }

 private:
  std::vector<artuneComm_t> comms_;
};

}  // namespace artune
