// A number that depends on the bytes of an exchange, over a range of sizes: what it is at both ends of the range, and
// whether it runs straight between them. Formulas of collectives reckon in such numbers, so that what they say of two
// sizes they say of all between: sums and multiples of what is straight are straight, and so is the larger of two that
// do not cross.
//
// Of a range of one size both ends are the same number.
#pragma once

namespace sibyl {

struct Ranged {
  double begin = 0.0, end = 0.0;
  bool straight = true;

  constexpr Ranged() = default;
  constexpr Ranged(double everywhere) : begin(everywhere), end(everywhere) {}  // NOLINT: a number is one of any range
  constexpr Ranged(double at_begin, double at_end, bool runs_straight = true)
      : begin(at_begin), end(at_end), straight(runs_straight) {}

  // Of a range of one size.
  [[nodiscard]] constexpr double value() const { return begin; }

  friend constexpr Ranged operator+(const Ranged& a, const Ranged& b) {
    return {a.begin + b.begin, a.end + b.end, a.straight && b.straight};
  }
  friend constexpr Ranged operator-(const Ranged& a, const Ranged& b) {
    return {a.begin - b.begin, a.end - b.end, a.straight && b.straight};
  }
  friend constexpr Ranged operator*(const Ranged& a, double by) { return {a.begin * by, a.end * by, a.straight}; }
  friend constexpr Ranged operator*(double by, const Ranged& a) { return a * by; }
  friend constexpr Ranged operator/(const Ranged& a, double by) { return {a.begin / by, a.end / by, a.straight}; }
  constexpr Ranged& operator+=(const Ranged& other) { return *this = *this + other; }

  friend constexpr Ranged max(const Ranged& a, const Ranged& b) {
    return {a.begin < b.begin ? b.begin : a.begin, a.end < b.end ? b.end : a.end, never_cross(a, b)};
  }
  friend constexpr Ranged min(const Ranged& a, const Ranged& b) {
    return {b.begin < a.begin ? b.begin : a.begin, b.end < a.end ? b.end : a.end, never_cross(a, b)};
  }

 private:
  static constexpr bool never_cross(const Ranged& a, const Ranged& b) {
    const bool a_above = a.begin >= b.begin && a.end >= b.end, b_above = b.begin >= a.begin && b.end >= a.end;
    return a.straight && b.straight && (a_above || b_above);
  }
};

}  // namespace sibyl
