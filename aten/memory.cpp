#include "aten/memory.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>

namespace sibyl::aten {
namespace {

constexpr std::size_t line = 64;

std::atomic<std::int64_t> live_bytes{0}, peak_bytes{0};

void count(std::int64_t bytes) {
  const std::int64_t now = live_bytes.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::int64_t peak = peak_bytes.load(std::memory_order_relaxed);
  while (now > peak && !peak_bytes.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
}

c10::Allocator* inner = nullptr;
thread_local bool paused = false;

void release(void* data) {
  if (!data) return;
  char* block = static_cast<char*>(data) - line;
  std::size_t bytes = 0;
  std::memcpy(&bytes, block, sizeof bytes);
  live_bytes.fetch_sub(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
  inner->raw_deallocate(block);
}

c10::DataPtr allocate_counted(std::size_t size) {
  const c10::Device cpu(c10::DeviceType::CPU);
  if (size == 0) return {nullptr, nullptr, &release, cpu};
  const std::size_t bytes = paused ? 0 : (size + line - 1) / line * line;
  char* block = static_cast<char*>(inner->raw_allocate(size + line));
  std::memcpy(block, &bytes, sizeof bytes);
  count(static_cast<std::int64_t>(bytes));
  return {block + line, block + line, &release, cpu};
}

// allocate() is const in libtorch 1.13 and not in later 2.x, where copy_data() is new: each form overrides what the
// installed one declares and is an ordinary member elsewhere.
class CountingAllocator final : public c10::Allocator {
 public:
  // NOLINTBEGIN(modernize-use-override)
  c10::DataPtr allocate(std::size_t size) const { return allocate_counted(size); }
  c10::DataPtr allocate(std::size_t size) { return allocate_counted(size); }
  void copy_data(void* to, const void* from, std::size_t bytes) const { std::memcpy(to, from, bytes); }
  // NOLINTEND(modernize-use-override)
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
};

}  // namespace

void MemoryMeter::install() {
  static std::once_flag once;
  std::call_once(once, [] {
    static CountingAllocator allocator;
    inner = c10::GetCPUAllocator();
    c10::SetCPUAllocator(&allocator, 1);
  });
}

std::int64_t MemoryMeter::live() { return live_bytes.load(std::memory_order_relaxed); }
std::int64_t MemoryMeter::peak() { return peak_bytes.load(std::memory_order_relaxed); }
void MemoryMeter::take(std::int64_t bytes) { count(bytes); }
void MemoryMeter::give(std::int64_t bytes) { live_bytes.fetch_sub(bytes, std::memory_order_relaxed); }
void MemoryMeter::replace(std::int64_t bytes) { live_bytes.fetch_add(bytes, std::memory_order_relaxed); }

MemoryMeter::Pause::Pause() : before_(std::exchange(paused, true)) {}
MemoryMeter::Pause::~Pause() { paused = before_; }

void MemoryMeter::reset_peak() { peak_bytes.store(live(), std::memory_order_relaxed); }

}  // namespace sibyl::aten
