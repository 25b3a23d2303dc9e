// Live bytes of a device by kind, the most there ever were, and storages that several tensors hold.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <vector>

#include "oracle/memory/footprint.h"

namespace sibyl {

enum class MemoryKind { weights, gradients, optimizer, activations, workspace, communication, framework };

class Ledger {
 public:
  explicit Ledger(double granularity) : granularity_(granularity) {}

  void take(MemoryKind kind, double bytes) {
    live(kind) += rounded(bytes);
    note();
  }
  void give(MemoryKind kind, double bytes) { live(kind) -= rounded(bytes); }
  void phase(const char* name) { phase_ = name; }

  [[nodiscard]] Footprint result() const {
    using enum MemoryKind;
    const auto b = [&](MemoryKind kind) { return Bytes{peak_[static_cast<std::size_t>(kind)]}; };
    return {{Bytes{peak_total_}, b(weights), b(gradients), b(optimizer), b(activations), b(workspace), b(communication),
             b(framework)},
            peak_phase_};
  }

 private:
  [[nodiscard]] double rounded(double bytes) const { return std::ceil(bytes / granularity_) * granularity_; }
  double& live(MemoryKind kind) { return live_[static_cast<std::size_t>(kind)]; }

  void note() {
    double total = 0;
    for (const double bytes : live_) total += bytes;
    if (total <= peak_total_) return;
    peak_total_ = total;
    peak_ = live_;
    peak_phase_ = phase_;
  }

  double granularity_;
  std::array<double, 7> live_{}, peak_{};  // by kind
  double peak_total_ = 0;
  const char* phase_ = "forward";
  const char* peak_phase_ = "forward";
};

// Storages, which several tensors may view, each freed when nobody holds it.
class Storages {
 public:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  explicit Storages(Ledger& ledger) : ledger_(&ledger) {}

  std::size_t allocate(double bytes, MemoryKind kind) {
    ledger_->take(kind, bytes);
    storages_.push_back({bytes, 0, kind});
    return storages_.size() - 1;
  }
  void hold(std::size_t storage) {
    if (storage != none) ++storages_[storage].holders;
  }
  void release(std::size_t storage) {
    if (storage == none) return;
    if (--storages_[storage].holders == 0) ledger_->give(storages_[storage].kind, storages_[storage].bytes);
  }
  // Does anybody else hold it, too?
  [[nodiscard]] bool is_shared(std::size_t storage) const { return storage != none && storages_[storage].holders > 1; }
  [[nodiscard]] MemoryKind kind(std::size_t storage) const { return storages_[storage].kind; }

 private:
  struct Storage {
    double bytes = 0;
    int holders = 0;
    MemoryKind kind = MemoryKind::activations;
  };
  Ledger* ledger_;
  std::vector<Storage> storages_;
};

}  // namespace sibyl
