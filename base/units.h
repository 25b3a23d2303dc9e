// Strong units: a number that knows what it measures.
//
// Every quantity that crosses a function boundary in Sibyl is one of these types, held as a double in SI units
// (seconds, bytes, floating-point operations). Adding seconds to bytes does not compile; dividing Bytes by
// BytesPerSecond gives Seconds. A raw double is taken and given back only at the edges: `Seconds{0.5}`, `t.value()`.
#pragma once

#include <compare>

namespace sibyl {

template <class Tag>
class Unit {
 public:
  constexpr Unit() = default;
  constexpr explicit Unit(double value) : value_(value) {}

  [[nodiscard]] constexpr double value() const { return value_; }

  constexpr auto operator<=>(const Unit&) const = default;

  constexpr Unit& operator+=(Unit other) { value_ += other.value_; return *this; }
  constexpr Unit& operator-=(Unit other) { value_ -= other.value_; return *this; }
  constexpr Unit& operator*=(double factor) { value_ *= factor; return *this; }
  constexpr Unit& operator/=(double divisor) { value_ /= divisor; return *this; }

  friend constexpr Unit operator+(Unit a, Unit b) { return Unit{a.value_ + b.value_}; }
  friend constexpr Unit operator-(Unit a, Unit b) { return Unit{a.value_ - b.value_}; }
  friend constexpr Unit operator-(Unit a) { return Unit{-a.value_}; }
  friend constexpr Unit operator*(Unit a, double f) { return Unit{a.value_ * f}; }
  friend constexpr Unit operator*(double f, Unit a) { return Unit{a.value_ * f}; }
  friend constexpr Unit operator/(Unit a, double d) { return Unit{a.value_ / d}; }
  friend constexpr double operator/(Unit a, Unit b) { return a.value_ / b.value_; }

 private:
  double value_ = 0.0;
};

using Seconds = Unit<struct SecondsTag>;
using Bytes = Unit<struct BytesTag>;
using Flops = Unit<struct FlopsTag>;  // a count of floating-point operations, not a rate
using BytesPerSecond = Unit<struct BytesPerSecondTag>;
using FlopsPerSecond = Unit<struct FlopsPerSecondTag>;
using Watts = Unit<struct WattsTag>;

constexpr Seconds operator/(Bytes b, BytesPerSecond r) { return Seconds{b.value() / r.value()}; }
constexpr BytesPerSecond operator/(Bytes b, Seconds t) { return BytesPerSecond{b.value() / t.value()}; }
constexpr Bytes operator*(BytesPerSecond r, Seconds t) { return Bytes{r.value() * t.value()}; }
constexpr Bytes operator*(Seconds t, BytesPerSecond r) { return r * t; }
constexpr Seconds operator/(Flops f, FlopsPerSecond r) { return Seconds{f.value() / r.value()}; }
constexpr FlopsPerSecond operator/(Flops f, Seconds t) { return FlopsPerSecond{f.value() / t.value()}; }
constexpr Flops operator*(FlopsPerSecond r, Seconds t) { return Flops{r.value() * t.value()}; }

}  // namespace sibyl
