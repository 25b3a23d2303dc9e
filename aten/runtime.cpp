#include "aten/runtime.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <malloc.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace sibyl::aten {
namespace {

constexpr const char* tunables = "GLIBC_TUNABLES";
constexpr const char* huge_pages = "glibc.malloc.hugetlb";

std::string tunables_set() {
  const char* set = std::getenv(tunables);
  return set ? set : "";
}

// What the kernel does with memory: "always", "madvise" (huge pages for who asks) or "never".
std::string kernels_choice() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string choices;
  std::getline(file, choices);
  const std::size_t first = choices.find('[');
  return first == std::string::npos ? "never" : choices.substr(first + 1, choices.find(']') - first - 1);
}

}  // namespace

void ask_for_huge_pages(char** argv) {
  const std::string before = tunables_set();
  if (before.find(huge_pages) != std::string::npos || kernels_choice() != "madvise") return;
  const std::string all = before + (before.empty() ? "" : ":") + huge_pages + "=1";
  std::error_code unknown;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", unknown);  // keeps its name so
  if (!unknown && setenv(tunables, all.c_str(), 1) == 0) execv(self.c_str(), argv);
  // Still here: the system does not allow it, and small pages do, too.
  if (before.empty())
    unsetenv(tunables);
  else
    setenv(tunables, before.c_str(), 1);
}

bool has_huge_pages() {
  const std::string choice = kernels_choice();
  return choice == "always" ||
         (choice == "madvise" && tunables_set().find(std::string(huge_pages) + "=1") != std::string::npos);
}

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
