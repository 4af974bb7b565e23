// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "profile/document_text.hpp"

#include <algorithm>

namespace artune {
namespace {

/// 0 for a scalar, 1 for a list of scalars, and so on.
int height(const Json& value) {
  if (!value.is_structured()) return 0;
  int highest = 0;
  for (const auto& element : value) highest = std::max(highest, height(element));
  return highest + 1;
}

std::string scalar_text(const Json& scalar) { return scalar.dump(-1, ' ', false, Json::error_handler_t::replace); }

void write_line(const Json& value, std::string& out) {
  if (!value.is_structured()) {
    out += scalar_text(value);
    return;
  }
  out += value.is_array() ? '[' : '{';
  bool first = true;
  for (const auto& item : value.items()) {
    if (!first) out += ", ";
    first = false;
    if (value.is_object()) out += scalar_text(item.key()) + ": ";
    write_line(item.value(), out);
  }
  out += value.is_array() ? ']' : '}';
}

// A row is an element of a list that holds scalars and flat objects only (a range with its geometry).
constexpr int kRowHeight = 2;

void write_block(const Json& value, bool element, std::size_t indent, std::string& out) {
  const int levels = height(value);
  const bool one_line = levels == 0 || value.empty() || (value.is_array() && levels == 1) || (element && levels <= kRowHeight);
  if (one_line) {
    write_line(value, out);
    return;
  }
  out += value.is_array() ? "[\n" : "{\n";
  bool first = true;
  for (const auto& item : value.items()) {
    if (!first) out += ",\n";
    first = false;
    out.append(indent + 2, ' ');
    if (value.is_object()) out += scalar_text(item.key()) + ": ";
    write_block(item.value(), value.is_array(), indent + 2, out);
  }
  out += '\n';
  out.append(indent, ' ');
  out += value.is_array() ? ']' : '}';
}

}  // namespace

std::string document_text(const Json& document) {
  std::string text;
  write_block(document, false, 0, text);
  text += '\n';
  return text;
}

}  // namespace artune
