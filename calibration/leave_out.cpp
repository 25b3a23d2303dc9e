#include "calibration/leave_out.h"

#include <map>
#include <unordered_set>
#include <utility>

#include "profiler/interpolation/cost_key.h"

namespace sibyl {
namespace {

std::string kind_of(const KernelKey& key) {
  const Attributes& attributes = key.signature.attributes;
  std::string name(name_of(attributes));
  if (std::holds_alternative<Unary>(attributes) || std::holds_alternative<Binary>(attributes)) name = "elementwise";
  if (const auto* attention = std::get_if<Attention>(&attributes)) name += attention->causal ? ", causal" : "";
  if (const auto* norm = std::get_if<Normalization>(&attributes))
    name = std::string(enum_names(norm->kind)[static_cast<std::size_t>(norm->kind)]) + " norm";
  if (key.pass == Pass::forward) return std::holds_alternative<Convolution>(attributes) ? name + ", forward" : name;
  return name + (key.gradients == 1 ? ", gradient of x" : key.gradients == 2 ? ", gradient of w" : ", backward");
}

class Report {
 public:
  void add(const KernelTable& table, const KernelSample& sample) {
    const Estimate e = table.estimate(sample.key).time;
    groups_[{kind_of(sample.key), sample.key.signature.dtype}].push_back({e.time / sample.time, e.relative_error});
  }

  [[nodiscard]] std::vector<KernelErrors> errors() const {
    std::vector<KernelErrors> all;
    for (const auto& [group, outcomes] : groups_)
      all.push_back({summary_of(outcomes), group.first, group.second});
    return all;
  }

 private:
  std::map<std::pair<std::string, DType>, std::vector<Outcome>> groups_;
};

// Every so many-th sample of each kind, so that at most `most` of a kind are left.
std::vector<const KernelSample*> some_of(const std::vector<KernelSample>& samples, std::size_t most) {
  std::map<std::pair<std::string, DType>, std::vector<const KernelSample*>> kinds;
  for (const KernelSample& sample : samples)
    kinds[{kind_of(sample.key), sample.key.signature.dtype}].push_back(&sample);
  std::vector<const KernelSample*> chosen;
  for (const auto& [kind, members] : kinds) {
    const std::size_t stride = (members.size() + most - 1) / most;
    for (std::size_t i = 0; i < members.size(); i += stride) chosen.push_back(members[i]);
  }
  return chosen;
}

}  // namespace

std::vector<KernelErrors> left_out(const Calibration& calibration) {
  constexpr std::size_t folds = 20;
  Report report;
  for (std::size_t fold = 0; fold < folds; ++fold) {
    std::vector<KernelSample> seen, unseen;
    for (const KernelSample& sample : calibration.kernels)
      (std::hash<std::string>{}(to_string(interpolation::cost_key(sample.key))) % folds == fold ? unseen : seen)
          .push_back(sample);
    const KernelTable table(calibration.device, std::move(seen));
    for (const KernelSample& sample : unseen) report.add(table, sample);
  }
  return report.errors();
}

std::vector<KernelErrors> hidden(const Calibration& calibration, bool strangers) {
  constexpr std::size_t most_of_a_kind = 400;
  Calibration without;
  without.device = calibration.device;
  for (const std::string& name : calibration.donors) {
    const auto donor = shipped_calibration(name);
    if (donor && (!strangers || donor->device.architecture != calibration.device.architecture))
      without.donors.push_back(name);
  }
  const KernelTable table = kernel_table(std::move(without));
  Report report;
  for (const KernelSample* sample : some_of(calibration.kernels, most_of_a_kind)) report.add(table, *sample);
  return report.errors();
}

std::vector<KernelErrors> against(const Calibration& calibration, const Calibration& truth) {
  std::unordered_set<KernelKey> seen;
  for (const KernelSample& sample : calibration.kernels) seen.insert(sample.key);
  const KernelTable table = kernel_table(calibration);
  Report report;
  for (const KernelSample& sample : truth.kernels)
    if (!seen.contains(sample.key)) report.add(table, sample);
  return report.errors();
}

}  // namespace sibyl
