#include "aten/runtime.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <malloc.h>

namespace sibyl::aten {

void prepare_process(int threads) {
#ifdef __GLIBC__
  constexpr int grow_by = 64 << 20;  // at a time, so that growing is rare
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);  // never
  mallopt(M_TOP_PAD, grow_by);
#endif
  at::globalContext().setFlushDenormal(true);
  at::set_num_threads(threads);
}

}  // namespace sibyl::aten
