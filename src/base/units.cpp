// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "base/units.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>

namespace artune {
namespace {

struct Quantity {
  double number;
  std::string unit;  // lower case
};

/// A plain decimal (digits, optional fraction; no sign, exponent, hex, inf or nan) and what follows it.
std::optional<Quantity> split(std::string_view text) {
  std::size_t digits = 0;
  bool point = false;
  bool any_digit = false;
  for (; digits < text.size(); ++digits) {
    const char c = text[digits];
    if (c == '.' && !point) {
      point = true;
    } else if (c >= '0' && c <= '9') {
      any_digit = true;
    } else {
      break;
    }
  }
  if (!any_digit) return std::nullopt;
  double number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + digits, number, std::chars_format::fixed);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + digits) return std::nullopt;
  std::string unit(text.substr(digits));
  std::transform(unit.begin(), unit.end(), unit.begin(), [](unsigned char c) { return std::tolower(c); });
  return Quantity{number, unit};
}

}  // namespace

Result<std::size_t> parse_size(std::string_view text) {
  const auto bad = [&](const char* why) {
    return Error{Reason::usage, "size '" + std::string(text) + "': " + why +
                                    "; write a decimal number with K, M or G (binary), e.g. 64K or 1.5MiB"};
  };
  const auto quantity = split(text);
  if (!quantity) return bad("not a number");
  double scale = 0;
  const std::string& unit = quantity->unit;
  if (unit.empty() || unit == "b") {
    scale = 1;
  } else if (unit == "k" || unit == "kb" || unit == "kib") {
    scale = 1024.0;
  } else if (unit == "m" || unit == "mb" || unit == "mib") {
    scale = 1024.0 * 1024.0;
  } else if (unit == "g" || unit == "gb" || unit == "gib") {
    scale = 1024.0 * 1024.0 * 1024.0;
  } else {
    return bad("unknown unit");
  }
  const double bytes = std::floor(quantity->number * scale);
  if (!(bytes < 9007199254740992.0)) return bad("too large");  // 2^53: beyond it a double skips integers
  return static_cast<std::size_t>(bytes);
}

Result<double> parse_duration(std::string_view text) {
  const auto quantity = split(text);
  if (quantity) {
    if (quantity->unit == "s") return quantity->number;
    if (quantity->unit == "ms") return quantity->number / 1000.0;
    if (quantity->unit == "m") return quantity->number * 60.0;
  }
  return Error{Reason::usage, "duration '" + std::string(text) + "': write a number with ms, s or m, e.g. 500ms, 10s or 2m"};
}

std::string format_size(std::size_t bytes) {
  constexpr struct {
    std::size_t scale;
    char suffix;
  } units[] = {{std::size_t{1} << 30, 'G'}, {std::size_t{1} << 20, 'M'}, {std::size_t{1} << 10, 'K'}};
  for (const auto& unit : units) {
    if (bytes < unit.scale) continue;
    // Quarters are exact in two decimals: 1.5M, 1.25M. Anything finer falls through to a smaller unit.
    if (bytes * 4 % unit.scale == 0) {
      std::string text = std::to_string(bytes / unit.scale);
      const std::size_t quarters = bytes % unit.scale * 4 / unit.scale;
      constexpr const char* fractions[] = {"", ".25", ".5", ".75"};
      return text + fractions[quarters] + unit.suffix;
    }
  }
  return std::to_string(bytes);
}

}  // namespace artune
