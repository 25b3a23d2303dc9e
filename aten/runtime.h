// Readies a process to train or to time kernels, the same for both.
#pragma once

namespace sibyl::aten {

// Call first of all in main(), before MPI: malloc's memory lies in huge pages (2 MiB) where the kernel gives them to
// who asks. glibc asks if its tunable says so before a process starts, so the process starts itself once more; a
// tunable that is set already (GLIBC_TUNABLES=glibc.malloc.hugetlb=0) is left as it is. In small pages the same step
// took 1.08 to 1.18 s in three processes, most likely as its pages happened to lie, and 0.98 to 1.03 s in huge ones
// (docs/trainer.md).
void ask_for_huge_pages(char** argv);

// Whether malloc's memory lies in huge pages.
bool has_huge_pages();

// Call once, before the first tensor and before other threads start.
//
// - `threads` compute threads for ATen.
// - malloc keeps what it got. ATen has no caching allocator on the CPU: by default glibc maps each large tensor anew
// and gives
//   it back at release, so every step page-faults through all its memory again (4 KiB at a time, zeroed by the kernel),
//   which costs as much as small operations do and varies with the system's state. With memory kept, steady steps
//   reuse the pages of earlier ones, as they do on a device with a caching allocator. The price is that the
//   process never shrinks.
// - Denormal numbers are flushed to zero: they slow arithmetic down tenfold where gradients fade.
void prepare_process(int threads);

}  // namespace sibyl::aten
