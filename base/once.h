// What is worked out when it is first asked for, and then kept. Any number of threads may ask at once, and none waits:
// two that are the first both work it out, and the same one of their results is given to all.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace sibyl {

template <class Value>
class Once {
 public:
  Once() = default;
  Once(const Once&) = delete;
  Once& operator=(const Once&) = delete;
  ~Once() { delete kept_.load(std::memory_order_relaxed); }

  template <class Make>
  [[nodiscard]] const Value& get(const Make& make) const {
    const Value* kept = kept_.load(std::memory_order_acquire);
    if (kept != nullptr) return *kept;
    std::unique_ptr<const Value> made(new Value(make()));
    if (!kept_.compare_exchange_strong(kept, made.get(), std::memory_order_acq_rel)) return *kept;
    return *made.release();
  }

 private:
  mutable std::atomic<const Value*> kept_{nullptr};
};

// By key, some thousands of them. What it gave stays where it is until it ends or is cleared, which nobody may do while
// others ask. A copy has nothing yet.
template <class Key, class Value, class KeyHash>
class Remembered {
 public:
  Remembered() = default;
  Remembered(const Remembered& /*other*/) {}
  Remembered& operator=(const Remembered&) = delete;
  ~Remembered() { clear(); }

  template <class Make>
  [[nodiscard]] const Value& get(const Key& key, const Make& make) const {
    std::atomic<Entry*>& first = buckets_[KeyHash()(key) % buckets_.size()];
    Entry* known = first.load(std::memory_order_acquire);
    if (const Entry* found = find(known, key)) return found->value;
    std::unique_ptr<Entry> made(new Entry{key, make(), known});
    while (!first.compare_exchange_weak(made->next, made.get(), std::memory_order_acq_rel, std::memory_order_acquire))
      if (const Entry* found = find(made->next, key)) return found->value;
    return made.release()->value;
  }

  void clear() {
    for (std::atomic<Entry*>& first : buckets_)
      for (Entry* entry = first.exchange(nullptr); entry != nullptr;) delete std::exchange(entry, entry->next);
  }

 private:
  struct Entry {
    Key key;
    Value value;
    Entry* next;
  };
  static const Entry* find(const Entry* entry, const Key& key) {
    while (entry != nullptr && !(entry->key == key)) entry = entry->next;
    return entry;
  }

  mutable std::array<std::atomic<Entry*>, 1024> buckets_{};
};

}  // namespace sibyl
