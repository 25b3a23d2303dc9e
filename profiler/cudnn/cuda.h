// CUDA's objects with owners. Of this folder alone. Whatever a library refuses is a Refusal, caught at the edge
// (time_kernel.cpp, gpu.cpp), where it becomes an Error.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

#include "profiler/cudnn/kernels.h"

namespace sibyl::cudnn {

struct Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void check(cudaError_t status, const char* what);
void check(cudnnStatus_t status, const char* what);
void check(cublasStatus_t status, const char* what);

// Memory of the device. Empty for 0 bytes.
class Memory {
 public:
  Memory() = default;
  explicit Memory(std::size_t bytes) : bytes_(bytes) {
    if (bytes > 0) check(cudaMalloc(&data_, bytes), "device memory");
  }
  ~Memory() {
    if (data_) cudaFree(data_);
  }
  Memory(Memory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Memory& operator=(Memory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "an event"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(cudaStream_t stream) { check(cudaEventRecord(event_, stream), "an event"); }
  void wait() const { check(cudaEventSynchronize(event_), "a kernel"); }
  // Seconds from `start` to this.
  [[nodiscard]] double since(const Event& start) const;

 private:
  cudaEvent_t event_ = nullptr;
};

// A word that the host writes and a kernel reads.
class Flag {
 public:
  Flag() { check(cudaHostAlloc(&memory_, sizeof(int), cudaHostAllocMapped), "host memory"); }
  ~Flag() { cudaFreeHost(memory_); }
  Flag(const Flag&) = delete;
  Flag& operator=(const Flag&) = delete;
  void set(int value) { *static_cast<volatile int*>(memory_) = value; }
  [[nodiscard]] const volatile int* word() const { return static_cast<const volatile int*>(memory_); }

 private:
  void* memory_ = nullptr;
};

// A device with its libraries open, on one stream.
class Libraries {
 public:
  explicit Libraries(int device);
  ~Libraries();
  Libraries(const Libraries&) = delete;
  Libraries& operator=(const Libraries&) = delete;

  [[nodiscard]] cudaStream_t stream() const { return stream_; }
  [[nodiscard]] cudnnHandle_t cudnn() const { return cudnn_; }
  [[nodiscard]] cublasLtHandle_t cublas() const { return cublas_; }
  [[nodiscard]] const cudaDeviceProp& properties() const { return properties_; }

 private:
  cudaStream_t stream_ = nullptr;
  cudnnHandle_t cudnn_ = nullptr;
  cublasLtHandle_t cublas_ = nullptr;
  cudaDeviceProp properties_{};
};

}  // namespace sibyl::cudnn
