// Live bytes of a device by kind, the most there ever were, and storages that several tensors hold.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "oracle/memory/caching_allocator.h"
#include "oracle/memory/footprint.h"
#include "oracle/memory/recorder.h"
#include "oracle/memory/reuse.h"

namespace sibyl {

class Ledger {
 public:
  // `framework`: what is there before anything is asked for. Through `allocator`, if there is one, goes all the rest.
  // `recorder`, if there is one, hears of everything.
  Ledger(double granularity, Bytes framework, std::optional<CachingAllocator> allocator, MemoryRecorder* recorder)
      : granularity_(granularity), per_byte_(1 / granularity), allocator_(std::move(allocator)), recorder_(recorder) {
    change(MemoryKind::framework, rounded(framework.value()), {});
    note();
  }

  void take(MemoryKind kind, double bytes, const MemoryOwner& owner) {
    change(kind, rounded(bytes), owner);
    note();
    if (!allocator_ || bytes <= 0) return;
    blocks(kind)[bytes].push_back(allocator_->take(static_cast<std::int64_t>(bytes)));
    // Only what is taken changes what is held: what is given back is kept.
    if (recorder_) recorder_->reserved(static_cast<double>(allocator_->reserved()));
  }
  void give(MemoryKind kind, double bytes, const MemoryOwner& owner) {
    change(kind, -rounded(bytes), owner);
    if (!allocator_ || bytes <= 0) return;
    // Which of several alike goes is not said: the last, as backward gives back what forward took.
    std::vector<CachingAllocator::Block>& alike = blocks(kind).at(bytes);
    allocator_->give(alike.back());
    alike.pop_back();
  }
  void phase(const char* name) { phase_ = name; }
  void enter(const StepPlace& place) {
    if (recorder_) recorder_->begin(place);
  }

  [[nodiscard]] Footprint result() const {
    using enum MemoryKind;
    const auto b = [&](MemoryKind kind) { return Bytes{peak_[static_cast<std::size_t>(kind)]}; };
    MemoryBreakdown peak{Bytes{peak_total_}, b(weights),   b(gradients),     b(optimizer),
                         b(activations),     b(workspace), b(communication), b(framework)};
    if (allocator_) peak.reserved = peak.framework + Bytes{static_cast<double>(allocator_->most_reserved())};
    return {peak, peak_phase_, allocator_ && allocator_->exhausted()};
  }

 private:
  // Up; std::ceil() is a call.
  [[nodiscard]] double rounded(double bytes) const {
    const double granules = bytes * per_byte_, whole = static_cast<double>(static_cast<std::int64_t>(granules));
    return (whole < granules ? whole + 1 : whole) * granularity_;
  }
  void change(MemoryKind kind, double bytes, const MemoryOwner& owner) {
    live_[static_cast<std::size_t>(kind)] += bytes;
    if (recorder_) recorder_->changed(kind, bytes, owner, live_);
  }

  void note() {
    double total = 0;
    for (const double bytes : live_) total += bytes;
    if (total <= peak_total_) return;
    peak_total_ = total;
    peak_ = live_;
    peak_phase_ = phase_;
  }

  struct HashOfSize {
    std::size_t operator()(double bytes) const {
      return (std::bit_cast<std::uint64_t>(bytes) * 0x9E3779B97F4A7C15U) >> 32U;
    }
  };
  using BlocksBySize = std::unordered_map<double, std::vector<CachingAllocator::Block>, HashOfSize>;
  BlocksBySize& blocks(MemoryKind kind) { return blocks_[static_cast<std::size_t>(kind)]; }

  double granularity_, per_byte_;  // a power of two, so that both are exact
  std::optional<CachingAllocator> allocator_;
  MemoryRecorder* recorder_;
  std::array<BlocksBySize, memory_kinds> blocks_;
  LiveBytes live_{}, peak_{};
  double peak_total_ = 0;
  const char* phase_ = "forward";
  const char* peak_phase_ = "forward";
};

// Storages, which several tensors may view, each freed when nobody holds it.
class Storages {
 public:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  // `reuse`, if there is one, hears where each lies.
  Storages(Ledger& ledger, Reuse* reuse) : ledger_(&ledger), reuse_(reuse) {}

  std::size_t allocate(double bytes, MemoryKind kind, const MemoryOwner& owner) {
    ledger_->take(kind, bytes, owner);
    storages_.push_back({bytes, 0, kind, owner, reuse_ ? reuse_->take(bytes) : Reuse::Memory{}});
    return storages_.size() - 1;
  }
  void hold(std::size_t storage) {
    if (storage != none) ++storages_[storage].holders;
  }
  void release(std::size_t storage) {
    if (storage == none) return;
    const Storage& released = storages_[storage];
    if (--storages_[storage].holders > 0) return;
    ledger_->give(released.kind, released.bytes, released.owner);
    if (reuse_) reuse_->give(released.memory);
  }
  // Does anybody else hold it, too?
  [[nodiscard]] bool is_shared(std::size_t storage) const { return storage != none && storages_[storage].holders > 1; }
  [[nodiscard]] MemoryKind kind(std::size_t storage) const { return storages_[storage].kind; }
  [[nodiscard]] const Reuse::Memory& memory(std::size_t storage) const { return storages_[storage].memory; }

 private:
  struct Storage {
    double bytes = 0;
    int holders = 0;
    MemoryKind kind = MemoryKind::activations;
    MemoryOwner owner = {};
    Reuse::Memory memory = {};
  };
  Ledger* ledger_;
  Reuse* reuse_;
  std::vector<Storage> storages_;
};

}  // namespace sibyl
