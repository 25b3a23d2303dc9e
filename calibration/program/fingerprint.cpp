#include "calibration/program/fingerprint.h"

#include <fmt/format.h>
#include <hwloc.h>
#include <sys/utsname.h>

#include <memory>

#include "aten/runtime.h"
#include "calibration/program/ranks.h"
#include "profiler/torch/limits.h"

namespace sibyl {
namespace {

class Hardware {
 public:
  Hardware() {
    hwloc_topology_init(&topology_);
    hwloc_topology_load(topology_);
  }
  ~Hardware() { hwloc_topology_destroy(topology_); }
  Hardware(const Hardware&) = delete;
  Hardware& operator=(const Hardware&) = delete;

  [[nodiscard]] int count(hwloc_obj_type_t type) const {
    return std::max(0, hwloc_get_nbobjs_by_type(topology_, type));
  }

  [[nodiscard]] std::string cpu_model() const {
    for (const hwloc_obj_type_t type : {HWLOC_OBJ_PACKAGE, HWLOC_OBJ_MACHINE}) {
      const hwloc_obj_t object = hwloc_get_obj_by_type(topology_, type, 0);
      const char* model = object ? hwloc_obj_get_info_by_name(object, "CPUModel") : nullptr;
      if (model) return model;
    }
    return "unknown";
  }

  // "1048576 B x 2"; empty where there is no such level.
  [[nodiscard]] std::string cache(hwloc_obj_type_t level) const {
    const hwloc_obj_t object = hwloc_get_obj_by_type(topology_, level, 0);
    return object ? fmt::format("{} B x {}", object->attr->cache.size, count(level)) : "";
  }

  // The only object of that type that has all processors of this process; -1 where none has.
  [[nodiscard]] int only(hwloc_obj_type_t type) const {
    const std::unique_ptr<hwloc_bitmap_s, void (*)(hwloc_bitmap_t)> bound(hwloc_bitmap_alloc(), hwloc_bitmap_free);
    if (hwloc_get_cpubind(topology_, bound.get(), HWLOC_CPUBIND_PROCESS) != 0) return -1;
    for (int i = 0; i < count(type); ++i)
      if (const hwloc_obj_t object = hwloc_get_obj_by_type(topology_, type, static_cast<unsigned>(i));
          object != nullptr && hwloc_bitmap_isincluded(bound.get(), object->cpuset) != 0)
        return i;
    return -1;
  }

  [[nodiscard]] double memory() const { return static_cast<double>(hwloc_get_root_obj(topology_)->total_memory); }

 private:
  hwloc_topology_t topology_ = nullptr;
};

}  // namespace

std::map<std::string, std::string> machine_fingerprint() {
  const Hardware hardware;
  std::map<std::string, std::string> result{
      {"cpu", hardware.cpu_model()},
      {"sockets", std::to_string(hardware.count(HWLOC_OBJ_PACKAGE))},
      {"cores", std::to_string(hardware.count(HWLOC_OBJ_CORE))},
      {"hardware_threads", std::to_string(hardware.count(HWLOC_OBJ_PU))},
      // Rounded: what the kernel keeps for itself differs from boot to boot.
      {"memory", fmt::format("{:.0f} GiB", hardware.memory() / (1024.0 * 1024 * 1024))},
  };
  for (const auto& [name, level] : {std::pair{"cache_l1d", HWLOC_OBJ_L1CACHE}, std::pair{"cache_l2", HWLOC_OBJ_L2CACHE},
                                    std::pair{"cache_l3", HWLOC_OBJ_L3CACHE}})
    if (std::string text = hardware.cache(level); !text.empty()) result[name] = std::move(text);
  result["pages"] = aten::has_huge_pages() ? "huge" : "small";
  utsname system{};
  if (uname(&system) == 0) result["os"] = fmt::format("{} {} {}", system.sysname, system.release, system.machine);
  return result;
}

std::map<std::string, std::string> library_versions() {
  std::map<std::string, std::string> result = torch_versions();
  result["mpi"] = Ranks::library_version();
  return result;
}

Bytes machine_memory() { return Bytes{Hardware().memory()}; }

RankPlace place_of_this_process() {
  const Hardware hardware;
  return {hardware.only(HWLOC_OBJ_PACKAGE), hardware.only(HWLOC_OBJ_NUMANODE)};
}

}  // namespace sibyl
