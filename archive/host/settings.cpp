// SPDX-License-Identifier: Apache-2.0
#include "settings.hpp"

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

#include <warpheap/util/size_text.hpp>

namespace warpheap::archive {

namespace {

constexpr u64 most_zeroed_at_once = u64{128} << 20;  // 5 ms of copies, of the 20 ms that calls wait

[[noreturn]] void refuse(std::string_view what, std::string_view text, std::string const& why) {
  throw std::invalid_argument{std::string{what} + ": '" + std::string{text} + "' " + why};
}

u64 read_bytes(std::string_view what, std::string_view text, std::string_view size) {
  size_text const read{size};
  if (!read.is_size)
    refuse(what, text, std::string{"is not a size; sizes are like 1.5GiB, 80% and free-1GiB; "} + size_units_text);
  if (!read.is_whole) refuse(what, text, "is not a whole number of bytes");
  if (!read.fits) refuse(what, text, "is more bytes than there can be");
  if (read.bytes == 0) refuse(what, text, "is no memory");
  return read.bytes;
}

bool read_switch(std::string_view what, std::string_view text) {
  if (text != "0" && text != "1") refuse(what, text, "is neither 0 nor 1");
  return text == "1";
}

/// Null where it is unset or empty.
char const* variable(char const* name) {
  char const* const value = std::getenv(name);
  return value && *value ? value : nullptr;
}

bool switch_of_environment(char const* name) {
  char const* const value = variable(name);
  return value && read_switch(name, value);
}

/// `what` names the two texts, in errors.
void read_sizes(wishes& into, std::string_view of_size, char const* size, std::string_view of_grow, char const* grow) {
  if (size) into.size = pool_wish::read(of_size, size);
  std::string_view const growth = grow ? grow : "0";
  into.grows = growth != "0";
  into.has_limit = into.grows && growth != "1";
  if (into.has_limit) into.limit = pool_wish::read(of_grow, growth);
}

u64 whole_granules(pool_wish const& wish, device_limits const& device) {
  u64 const wanted = wish.of(device.free);
  u64 const pool = wish.includes_metadata() && wanted > device.granule ? device.pool_that_fits(wanted) : wanted;
  // What a user says in bytes is there in full, and a part of what is free is not exceeded.
  u64 const rounded_up = wish.includes_metadata() ? pool : pool + device.granule - 1;
  u64 const whole = rounded_up / device.granule * device.granule;
  if (whole != 0 && rounded_up >= pool) return whole;
  throw std::invalid_argument{"a pool of " + format_bytes(pool) + " is not possible; the least is " +
                              format_bytes(device.granule)};
}

}  // namespace

pool_wish pool_wish::read(std::string_view what, std::string_view text) {
  constexpr std::string_view all_but_prefix = "free-";
  if (text.ends_with('%')) {
    leading_number const percent{text};
    auto const [value, is_whole, fits] = percent.times(1);
    if (!is_whole || percent.rest() != "%") refuse(what, text, "is not a share; shares are like 80%");
    if (!fits || value == 0 || value > 100) refuse(what, text, "is not between 1% and 100%");
    return {percent_of_free, value};
  }
  if (text.starts_with(all_but_prefix)) return {all_but, read_bytes(what, text, text.substr(all_but_prefix.size()))};
  return {bytes, read_bytes(what, text, text)};
}

u64 pool_wish::of(u64 free) const {
  switch (meaning) {
    case bytes: return value;
    case percent_of_free: return free / 100 * value;
    case all_but: break;
  }
  if (value < free) return free - value;
  throw std::invalid_argument{"free-" + std::to_string(value) + " leaves nothing: the device has " +
                              std::to_string(free) + " bytes free"};
}

wishes wishes::read(warpheap_settings const& settings) {
  wishes wanted;
  read_sizes(wanted, "settings.size", settings.size, "settings.grow", settings.grow);
  wanted.reports = settings.report != 0;
  wanted.counts = wanted.reports || settings.counts != 0;
  wanted.forgiving = settings.forgiving != 0;
  return wanted;
}

warpheap_settings settings_of_environment() {
  warpheap_settings found{};
  found.size = variable("WARPHEAP_SIZE");
  found.grow = variable("WARPHEAP_GROW");
  wishes judged;
  read_sizes(judged, "WARPHEAP_SIZE", found.size, "WARPHEAP_GROW", found.grow);
  found.report = switch_of_environment("WARPHEAP_REPORT");
  found.forgiving = switch_of_environment("WARPHEAP_FORGIVING");
  return found;
}

pool_sizes sizes_for(wishes const& wanted, device_limits const& device) {
  u64 const size = whole_granules(wanted.size, device);
  u64 const limit = wanted.has_limit ? whole_granules(wanted.limit, device) : size;
  if (limit < size)
    throw std::invalid_argument{"a pool of " + format_bytes(size) + " at first cannot grow to " + format_bytes(limit)};
  u64 const of_32 = (limit / 32 + device.granule - 1) / device.granule * device.granule;
  u64 const chunk = wanted.forgiving ? (std::min)(of_32, most_zeroed_at_once) : of_32;
  u64 const initial = wanted.grows && !wanted.has_limit ? of_32 : size;
  return {initial, limit, chunk};
}

}  // namespace warpheap::archive
