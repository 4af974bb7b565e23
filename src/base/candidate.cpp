// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "base/candidate.hpp"

#include "base/units.hpp"

namespace artune {

std::string Candidate::label() const {
  std::string text = name;
  if (geometry.blocks > 0) text += " " + std::to_string(geometry.blocks) + "x" + std::to_string(geometry.threads);
  if (geometry.max_ctas > 0) text += " ctas=" + std::to_string(geometry.max_ctas);
  if (geometry.chunk_bytes > 0) text += " chunk=" + format_size(geometry.chunk_bytes);
  return text;
}

}  // namespace artune
