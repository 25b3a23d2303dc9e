#include "base/quantity.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <span>

namespace sibyl {
namespace {

struct Suffix {
  std::string_view text;
  double factor;
};

constexpr double ki = 1024.0;
constexpr double greatest = 1e18;  // of any unit: beyond any machine, and within 64-bit integers
constexpr std::array bytes_suffixes = {
    Suffix{"", 1},     Suffix{"B", 1},        Suffix{"kB", 1e3},         Suffix{"KB", 1e3},
    Suffix{"MB", 1e6}, Suffix{"GB", 1e9},     Suffix{"TB", 1e12},        Suffix{"PB", 1e15},
    Suffix{"KiB", ki}, Suffix{"MiB", ki* ki}, Suffix{"GiB", ki* ki* ki}, Suffix{"TiB", ki* ki* ki* ki},
    Suffix{"k", 1e3},  Suffix{"M", 1e6},      Suffix{"G", 1e9}};
constexpr std::array seconds_suffixes = {Suffix{"", 1},      Suffix{"s", 1},     Suffix{"ms", 1e-3},
                                         Suffix{"us", 1e-6}, Suffix{"µs", 1e-6}, Suffix{"ns", 1e-9},
                                         Suffix{"min", 60},  Suffix{"h", 3600},  Suffix{"d", 86400}};
constexpr std::array rate_suffixes = {Suffix{"", 1},           Suffix{"B/s", 1},        Suffix{"kB/s", 1e3},
                                      Suffix{"MB/s", 1e6},     Suffix{"GB/s", 1e9},     Suffix{"TB/s", 1e12},
                                      Suffix{"KiB/s", ki},     Suffix{"MiB/s", ki* ki}, Suffix{"GiB/s", ki* ki* ki},
                                      Suffix{"b/s", 0.125},    Suffix{"kb/s", 125.0},   Suffix{"Mb/s", 125e3},
                                      Suffix{"Gb/s", 125e6},   Suffix{"Tb/s", 125e9},   Suffix{"bit/s", 0.125},
                                      Suffix{"kbit/s", 125.0}, Suffix{"Mbit/s", 125e3}, Suffix{"Gbit/s", 125e6},
                                      Suffix{"Tbit/s", 125e9}, Suffix{"Gbps", 125e6},   Suffix{"Mbps", 125e3}};
constexpr std::array flops_suffixes = {Suffix{"", 1},           Suffix{"FLOP/s", 1},    Suffix{"kFLOP/s", 1e3},
                                       Suffix{"MFLOP/s", 1e6},  Suffix{"GFLOP/s", 1e9}, Suffix{"TFLOP/s", 1e12},
                                       Suffix{"PFLOP/s", 1e15}, Suffix{"GFLOPS", 1e9},  Suffix{"TFLOPS", 1e12},
                                       Suffix{"PFLOPS", 1e15}};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

Result<double> parse(std::string_view text, std::span<const Suffix> suffixes, std::string_view what,
                     std::string_view examples) {
  const std::string_view body = trimmed(text);
  auto bad = [&] {
    return fail(fmt::format("'{}' is not {}", text, what), {}, fmt::format("write it like {}", examples));
  };
  double number = 0;
  const auto [end, status] = std::from_chars(body.data(), body.data() + body.size(), number);
  if (status != std::errc{} || !std::isfinite(number) || number < 0) return bad();
  const std::string_view suffix = trimmed(body.substr(static_cast<std::size_t>(end - body.data())));
  for (const Suffix& s : suffixes)
    if (s.text == suffix) {
      const double value = number * s.factor;
      if (value > greatest) return fail(fmt::format("'{}' is too large", text));
      return value;
    }
  return bad();
}

std::string significant(double value, std::string_view unit) {
  const double magnitude = std::abs(value);
  const int decimals = magnitude >= 99.95 || value == 0 ? 0 : magnitude >= 9.995 ? 1 : 2;
  return unit.empty() ? fmt::format("{:.{}f}", value, decimals) : fmt::format("{:.{}f} {}", value, decimals, unit);
}

std::string scaled(double value, double base, std::span<const std::string_view> units) {
  std::size_t i = 0;
  // 999.5 would print as 1000 of the smaller unit.
  while (i + 1 < units.size() && std::abs(value) >= base * (1 - 0.5 / 1000)) value /= base, ++i;
  return significant(value, units[i]);
}

}  // namespace

Result<Bytes> parse_bytes(std::string_view text) {
  return parse(text, bytes_suffixes, "a size", "25MiB, 1.5GB or 4096").map([](double v) { return Bytes{v}; });
}
Result<Seconds> parse_seconds(std::string_view text) {
  return parse(text, seconds_suffixes, "a time", "3us, 2.5ms, 10s or 1h").map([](double v) { return Seconds{v}; });
}
Result<BytesPerSecond> parse_bytes_per_second(std::string_view text) {
  return parse(text, rate_suffixes, "a data rate", "100Gb/s (bits) or 12.5GB/s (bytes)").map([](double v) {
    return BytesPerSecond{v};
  });
}
Result<FlopsPerSecond> parse_flops_per_second(std::string_view text) {
  return parse(text, flops_suffixes, "a compute rate", "312TFLOP/s").map([](double v) { return FlopsPerSecond{v}; });
}

std::string to_string(Seconds t) {
  const double v = std::abs(t.value());
  if (v >= 86400) return significant(t.value() / 86400, "d");
  if (v >= 3600) return significant(t.value() / 3600, "h");
  if (v >= 60) return significant(t.value() / 60, "min");
  if (v >= 0.9995) return significant(t.value(), "s");
  if (v >= 0.9995e-3) return significant(t.value() * 1e3, "ms");
  if (v >= 0.9995e-6) return significant(t.value() * 1e6, "us");
  return v == 0 ? "0 s" : significant(t.value() * 1e9, "ns");
}

std::string to_string(Bytes b) {
  constexpr std::array<std::string_view, 6> units = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  return scaled(b.value(), 1024, units);
}
std::string to_string(BytesPerSecond r) {
  constexpr std::array<std::string_view, 6> units = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s"};
  return scaled(r.value(), 1000, units);
}
std::string to_string(Flops f) {
  constexpr std::array<std::string_view, 7> units = {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP"};
  return scaled(f.value(), 1000, units);
}
std::string to_string(FlopsPerSecond r) {
  constexpr std::array<std::string_view, 7> units = {"FLOP/s",  "kFLOP/s", "MFLOP/s", "GFLOP/s",
                                                     "TFLOP/s", "PFLOP/s", "EFLOP/s"};
  return scaled(r.value(), 1000, units);
}

std::string with_prefix(double value, std::string_view unit) {
  constexpr std::array<std::string_view, 5> prefixes = {"", "k", "M", "G", "T"};
  std::size_t i = 0;
  while (i + 1 < prefixes.size() && std::abs(value) >= 999.5) value /= 1000, ++i;
  if (i == 0 && value == std::floor(value)) {
    const std::string digits = fmt::format("{:.0f}", value);
    return unit.empty() ? digits : digits + " " + std::string(unit);
  }
  return significant(value, fmt::format("{}{}", prefixes[i], unit));
}

}  // namespace sibyl
