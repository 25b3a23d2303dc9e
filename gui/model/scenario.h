// A Scenario is one question: which model, on which cluster, trained how; in the very words of the command line, so
// that what a window shows can be asked again with `sibyl predict`.
//
// A value. What its words mean is found out by read_study() (study.h), with the parsers and the messages of the command
// line.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "oracle/strategy.h"

namespace sibyl::gui {

struct Scenario {
  std::string name;     // as its owner calls it
  std::string model;    // a path, or "zoo:NAME"; empty: none yet
  std::string cluster;  // a shipped one's name, a cluster.yaml or a calibration.json
  // Of `sibyl predict` by name, as "--batch" -> {"64/device"}; a flag's value is ""; "--dim" may have several.
  std::map<std::string, std::vector<std::string>> options;
  std::vector<std::string>
      changes;  // parts of the cluster that are different: "nic.bandwidth=2x" (calibration/cluster_change.h)
  double device_hour_price = 0;    // of one device, in whatever currency; 0: not known
  std::int64_t epoch_samples = 0;  // samples that "how long, how dear" is asked for; 0: not asked

  [[nodiscard]] std::optional<std::string> option(const std::string& name) const;  // the last value given
  void set(const std::string& name, const std::string& value);                     // in place of all earlier ones
  void clear(const std::string& name);
  // Of `changes`: the value given for a part, "2x" of "nic.bandwidth"; where it was, or last; an empty one takes it
  // back.
  [[nodiscard]] std::optional<std::string> change(const std::string& key) const;
  void set_change(const std::string& key, const std::string& value);

  bool operator==(const Scenario&) const = default;
};

// What follows `sibyl predict`: "--batch=64/device", the changes as "--set=…", "--", the model.
std::vector<std::string> words(const Scenario& scenario);
// The whole command, quoted for a shell.
std::string command_line(const Scenario& scenario);

// With a strategy that a search found (oracle/search): what tells strategies of one space from each other becomes its
// own; the batch of the step stays, and so does everything else.
Scenario with_strategy(Scenario scenario, const Strategy& strategy);

}  // namespace sibyl::gui
