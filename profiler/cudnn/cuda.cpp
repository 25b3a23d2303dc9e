#include "profiler/cudnn/cuda.h"

#include <fmt/format.h>

namespace sibyl::cudnn {

void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // so that the next call does not find it again
  throw Refusal(fmt::format("CUDA: {}: {}", what, cudaGetErrorString(status)));
}
void check(cudnnStatus_t status, const char* what) {
  if (status != CUDNN_STATUS_SUCCESS) throw Refusal(fmt::format("cuDNN: {}: {}", what, cudnnGetErrorString(status)));
}
void check(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw Refusal(fmt::format("cuBLASLt: {}: {}", what, cublasLtGetStatusString(status)));
}

double Event::since(const Event& start) const {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, start.event_, event_), "an interval");
  return 1e-3 * static_cast<double>(milliseconds);
}

Libraries::Libraries(int device) {
  check(cudaSetDevice(device), "the device");
  check(cudaGetDeviceProperties(&properties_, device), "the device's properties");
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
  check(cudnnCreate(&cudnn_), "its handle");
  check(cudnnSetStream(cudnn_, stream_), "its stream");
  check(cublasLtCreate(&cublas_), "its handle");
}

Libraries::~Libraries() {
  if (cublas_) cublasLtDestroy(cublas_);
  if (cudnn_) cudnnDestroy(cudnn_);
  if (stream_) cudaStreamDestroy(stream_);
}

}  // namespace sibyl::cudnn
