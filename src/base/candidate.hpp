// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
//
// A candidate as documents write it: a name from the menu (kernels/paths/menu.hpp) and a geometry beside it.
#pragma once

#include <compare>
#include <cstddef>
#include <string>

namespace artune {

/// Resource choices of one candidate. Zero means "does not apply" and is left out of documents.
struct Geometry {
  int blocks = 0;               ///< thread blocks per rank
  int threads = 0;              ///< threads per block
  int max_ctas = 0;             ///< NCCL's limit on thread blocks (ncclConfig_t::maxCTAs)
  std::size_t chunk_bytes = 0;  ///< pipeline chunk of host/copy-engine

  auto operator<=>(const Geometry&) const = default;
};

struct Candidate {
  std::string name;  ///< "p2p/one-shot/ll"
  Geometry geometry;

  auto operator<=>(const Candidate&) const = default;

  /// "p2p/one-shot/ll 8x512", "nccl ctas=8", "host/copy-engine chunk=512K": for tables and progress.
  std::string label() const;
};

}  // namespace artune
