// Strategies that fit, as far as they were tried: what others are ruled out by.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "base/units.h"

namespace sibyl {

// What the front is judged by.
struct Point {
  Seconds time;
  Bytes memory;
  int devices = 1;

  [[nodiscard]] Seconds device_time() const { return time * devices; }
};

class Rivals {
 public:
  void note(const Point& point) {
    if (point.time < fastest_.time) fastest_ = point;
    const auto no_better = [](const Point& a, const Point& b) {
      return a.time >= b.time && a.memory >= b.memory && a.devices >= b.devices;
    };
    if (std::ranges::any_of(front_, [&](const Point& other) { return no_better(point, other); })) return;
    std::erase_if(front_, [&](const Point& other) { return no_better(other, point); });
    front_.push_back(point);
  }
  void note(const Rivals& others) {
    for (const Point& point : others.front_) note(point);
  }

  // More than so many times the device time of the fastest?
  [[nodiscard]] bool too_slow(Seconds time, int devices, double most) const {
    return time * devices > most * fastest_.device_time();
  }
  // Is one faster, with less memory, on as few devices, whichever way formulas are off, and the fastest much faster? Of
  // what takes so long at the least.
  [[nodiscard]] bool beat(const Point& at_least) const {
    constexpr double much = 1.1, time = 0.985, memory = 0.93;
    if (at_least.time <= much * fastest_.time) return false;
    return std::ranges::any_of(front_, [&](const Point& point) {
      return point.time <= time * at_least.time && point.memory <= memory * at_least.memory &&
             point.devices <= at_least.devices;
    });
  }

 private:
  Point fastest_{Seconds{std::numeric_limits<double>::infinity()}, {}, 1};
  std::vector<Point> front_;
};

}  // namespace sibyl
