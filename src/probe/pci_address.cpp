// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "probe/pci_address.hpp"

#include <fmt/format.h>

#include <charconv>
#include <vector>

namespace artune {
namespace {

std::optional<unsigned> hexadecimal(std::string_view digits, unsigned most) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size() || value > most) return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::string> normalize_pci_address(std::string_view text) {
  std::vector<std::string_view> parts;
  for (std::size_t colon; (colon = text.find(':')) != std::string_view::npos; text.remove_prefix(colon + 1))
    parts.push_back(text.substr(0, colon));
  const std::size_t dot = text.find('.');
  const auto device = hexadecimal(text.substr(0, dot), 0x1f);
  const auto function = dot == std::string_view::npos ? std::optional<unsigned>(0) : hexadecimal(text.substr(dot + 1), 7);
  if (parts.empty() || parts.size() > 2 || !device || !function) return std::nullopt;
  const auto bus = hexadecimal(parts.back(), 0xff);
  const auto domain = parts.size() == 2 ? hexadecimal(parts.front(), ~0U) : std::optional<unsigned>(0);
  if (!bus || !domain) return std::nullopt;
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", *domain, *bus, *device, *function);
}

}  // namespace artune
