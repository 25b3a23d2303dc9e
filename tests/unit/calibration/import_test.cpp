// Files of other programs become cluster files.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibration/import/cluster_text.h"
#include "calibration/import/host_list.h"
#include "netmodel/fabric/fabric.h"
#include "tests/unit/calibration/import_samples.h"

namespace sibyl::import {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Part part_of(std::string_view text) {
  auto part = read_part(text, "f");
  EXPECT_TRUE(part) << (part ? "" : to_string(part.error()));
  return part ? std::move(*part) : Part{};
}

Error import_error(std::string_view text) {
  const auto part = read_part(text, "f");
  EXPECT_FALSE(part);
  return part ? Error{} : part.error();
}

// The cluster file of these texts, read again; its fabric, if it has one, can be built.
ClusterFile cluster_of(const std::vector<std::string_view>& texts, Wanted wanted = {}) {
  if (wanted.calibration.empty() && !wanted.like) wanted.calibration = "a100-sxm-80gb";
  std::vector<Source> sources;
  for (const std::string_view text : texts) sources.push_back({"f", part_of(text)});
  const auto text = cluster_text(sources, wanted);
  EXPECT_TRUE(text) << (text ? "" : to_string(text.error()));
  if (!text) return {};
  auto file = parse_cluster_file(*text, "made");
  EXPECT_TRUE(file) << to_string(file.error()) << "\n" << *text;
  if (file && file->shape) {
    const auto fabric = fabric::Fabric::make(file->topology, *file->shape);
    EXPECT_TRUE(fabric) << to_string(fabric.error()) << "\n" << *text;
  }
  return file ? std::move(*file) : ClusterFile{};
}

// Twelve links of 20 GB/s; adapters as fast as the fastest, 200,000 Mb/s.
TEST(ImportNccl, ANodeOnNvSwitch) {
  const Part part = part_of(test::nccl_nvswitch);
  EXPECT_EQ(part.devices_per_node, 4);
  ASSERT_TRUE(part.device_link);
  EXPECT_EQ(part.device_link->kind, LinkKind::nvswitch);
  EXPECT_DOUBLE_EQ(part.device_link->bandwidth.value(), 240e9);
  ASSERT_TRUE(part.nics);
  EXPECT_EQ(part.nics->per_node, 2);
  EXPECT_DOUBLE_EQ(part.nics->bandwidth.value(), 25e9);
  EXPECT_THAT(part.assumed, ElementsAre(HasSubstr("1 of the adapters")));
}

// 16 lanes of 8 GT/s are 12 GB/s; a switch on each of two sockets.
TEST(ImportNccl, ANodeOnPcie) {
  const Part part = part_of(test::nccl_pcie);
  EXPECT_EQ(part.device_link->kind, LinkKind::pcie);
  EXPECT_DOUBLE_EQ(part.device_link->bandwidth.value(), 12e9);
  const auto* tree = std::get_if<fabric::PcieTree>(&*part.inside);
  ASSERT_NE(tree, nullptr);
  EXPECT_EQ(tree->sockets, 2);
  EXPECT_EQ(tree->switches_per_socket, 1);
  EXPECT_FALSE(part.nics);
}

std::string gpus_with(const std::vector<std::string>& links, int sm) {
  std::string text = "<system><cpu>";
  for (std::size_t i = 0; i < links.size(); ++i)
    text += fmt::format(
        R"(<pci busid="g{}" link_speed="16.0 GT/s PCIe" link_width="16"><gpu dev="{}" sm="{}">{}</gpu></pci>)", i, i,
        sm, links[i]);
  return text + "</cpu></system>";
}
std::string link_to(std::string_view target, std::string_view type, int count) {
  return fmt::format(R"(<nvlink target="{}" count="{}" tclass="{}"/>)", target, count, type);
}

// Two bridged pairs are no mesh of four; three joined to each other are one.
TEST(ImportNccl, NvLinksThatJoinPairsAlone) {
  const auto gpu = [](const char* bus) { return link_to(bus, "0x030200", 12); };
  const Part pairs = part_of(gpus_with({gpu("g1"), gpu("g0"), gpu("g3"), gpu("g2")}, 80));
  EXPECT_EQ(pairs.device_link->kind, LinkKind::pcie);
  EXPECT_DOUBLE_EQ(pairs.device_link->bandwidth.value(), 24e9);
  EXPECT_THAT(pairs.assumed, ElementsAre(HasSubstr("over PCIe")));
  const Part mesh = part_of(gpus_with({gpu("g1") + gpu("g2"), gpu("g0") + gpu("g2"), gpu("g0") + gpu("g1")}, 70));
  EXPECT_EQ(mesh.device_link->kind, LinkKind::nvlink_mesh);
  EXPECT_DOUBLE_EQ(mesh.device_link->bandwidth.value(), 24 * 20e9);
  // Domains of four digits and of eight, and names that are no GPU's.
  const Part long_names = part_of(gpus_with({gpu("00G1"), gpu("G0")}, 80));
  EXPECT_EQ(long_names.device_link->kind, LinkKind::nvlink_mesh);
  EXPECT_EQ(part_of(gpus_with({gpu("?"), gpu("!")}, 80)).device_link->kind, LinkKind::nvlink_mesh);
}

// On POWER9 NVLinks lead to processors, too: they join no GPUs.
TEST(ImportNccl, NvLinksToProcessors) {
  const std::string cpu = link_to("0000:00", "0x068001", 3);
  const Part part = part_of(gpus_with({cpu + link_to("g1", "0x030200", 3), cpu + link_to("g0", "0x030200", 3)}, 70));
  EXPECT_EQ(part.device_link->kind, LinkKind::nvlink_mesh);
  EXPECT_DOUBLE_EQ(part.device_link->bandwidth.value(), 3 * 20e9);
}

TEST(ImportNccl, SwitchesAddFromHopperOn) {
  const std::string to_switch = link_to("s", "0x068000", 18);
  for (const int sm : {80, 90, 100}) {
    const std::string text = gpus_with({to_switch, to_switch}, sm);
    EXPECT_EQ(part_of(text).device_link->reduces, sm >= 90) << sm;
    EXPECT_EQ(cluster_of({text}).topology.device_link.reduces, sm >= 90) << sm;
  }
}

TEST(ImportNccl, MistakesNameLineAndElement) {
  EXPECT_EQ(import_error("<system>\n  <cpu>\n    <pci>\n      <gpu dev=\"0\"/>\n</pci></cpu></system>").where, "f:4");
  const Error speed = import_error("<system>\n<cpu>\n<nic><net name=\"x\" speed=\"fast\"/></nic></cpu></system>");
  EXPECT_EQ(speed.where, "f:3");
  EXPECT_THAT(speed.message, HasSubstr("<net>: speed is 'fast'"));
  EXPECT_THAT(import_error("<system/>").message, HasSubstr("<gpu>"));
  EXPECT_EQ(import_error("<system>\n<cpu>\n").where.substr(0, 2), "f:");
  EXPECT_THAT(import_error("<system>\n<cpu>\n").message, HasSubstr("XML"));
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "<cpu>";
  for (int i = 0; i < 1000; ++i) deep += "</cpu>";
  EXPECT_THAT(import_error("<system>" + deep + "</system>").message, HasSubstr("too deep"));
}

// hwloc's 31.507692 GB/s is what NCCL counts as 24.
TEST(ImportHwloc, GpusAndAdaptersByPciClass) {
  const Part part = part_of(test::hwloc);
  EXPECT_EQ(part.devices_per_node, 4);
  EXPECT_NEAR(part.device_link->bandwidth.value(), 24e9, 1);
  ASSERT_TRUE(part.nics);
  EXPECT_EQ(part.nics->per_node, 1);
  EXPECT_NEAR(part.nics->bandwidth.value(), 24e9, 1);
  const auto* tree = std::get_if<fabric::PcieTree>(&*part.inside);
  ASSERT_NE(tree, nullptr);
  EXPECT_EQ(tree->sockets, 2);
  EXPECT_THAT(import_error("<topology><object type=\"Machine\"/></topology>").message, HasSubstr("GPU"));
  EXPECT_THAT(import_error("<topology>\n<object type=\"PCIDev\"/></topology>").where, "f:2");
}

// An adapter for storage carries no gradients, whatever its PCIe link; two bridges of one socket are one socket's.
TEST(ImportHwloc, SlowerAdaptersAndOneSocket) {
  const auto adapter = [](const char* speed) {
    return fmt::format(R"(<object type="PCIDev" pci_type="0207 [15b3:101b] [15b3:1] 00" pci_link_speed="{}">)"
                       R"(<object type="OSDev" name="mlx5_0" osdev_type="3"/></object>)",
                       speed);
  };
  const std::string gpu = R"(<object type="PCIDev" pci_type="0302 [10de:20b0] [10de:134f] a1" pci_link_speed="31.5"/>)";
  const auto bridge = [](const std::string& below) {
    return R"(<object type="Bridge" bridge_type="0-1">)" + below + "</object>";
  };
  const std::string text = R"(<topology><object type="Machine"><object type="Package">)" +
                           bridge(gpu + gpu + adapter("63.0")) + bridge(gpu + gpu + adapter("15.75")) +
                           R"(</object><object type="Package"/></object></topology>)";
  const Part part = part_of(text);
  EXPECT_EQ(part.nics->per_node, 1);
  EXPECT_NEAR(part.nics->bandwidth.value(), 63e9 * 24 / 31.507692, 1e6);
  EXPECT_THAT(part.assumed, testing::Contains(HasSubstr("1 of the adapters")));
  const auto* tree = std::get_if<fabric::PcieTree>(&*part.inside);
  ASSERT_NE(tree, nullptr);
  EXPECT_EQ(tree->sockets, 1);
  EXPECT_EQ(tree->switches_per_socket, 2);
}

TEST(ImportSlurm, SpacesAndQuotes) {
  const Part part = part_of("SwitchName = s0  Nodes = \"dev[0-1]\"\nSwitchName=s1 Switches= \"s0\"\n");
  ASSERT_TRUE(part.tree);
  ASSERT_EQ(part.tree->switches.size(), 2);
  EXPECT_EQ(part.tree->switches[0].name, "s0");
  EXPECT_THAT(part.tree->switches[0].nodes, ElementsAre("dev0", "dev1"));
  EXPECT_THAT(part.tree->switches[1].switches, ElementsAre("s0"));
}

TEST(ImportSlurm, HostLists) {
  EXPECT_THAT(HostLists().expand("a,n[08-10,12]x,r[1-2]-n[0-1]", "f").value(),
              ElementsAre("a", "n08x", "n09x", "n10x", "n12x", "r1-n0", "r1-n1", "r2-n0", "r2-n1"));
  for (const char* wrong : {"n[1-", "n]", "n[2-1]", "n[a-b]", "a,,b", "n[0-99999999]"})
    EXPECT_FALSE(HostLists().expand(wrong, "f")) << wrong;
}

TEST(ImportSlurm, NamesAreBoundedInLength) {
  const std::string longest(longest_name - 1, 'x');
  EXPECT_EQ(HostLists().expand(longest + "[1-9]", "f").value().size(), 9);
  // Zeros that a number keeps, what follows the brackets, and brackets by the thousand count, too.
  std::string many;
  for (std::size_t i = 0; i <= longest_name; ++i) many += "[1]";
  for (const std::string& wrong : {longest + "[9-10]", longest + "yy", "n[0]" + longest, many,
                                   "n[" + std::string(longest_name + 1, '0') + "-1]"}) {
    const auto names = HostLists().expand(wrong, "f");
    ASSERT_FALSE(names) << wrong;
    EXPECT_THAT(names.error().message, HasSubstr("more than 255 bytes"));
    EXPECT_LT(names.error().message.size(), 200);
  }
}

TEST(ImportSlurm, NamesAreCountedOverAFile) {
  HostLists lists;
  EXPECT_TRUE(lists.expand(fmt::format("n[1-{}]", most_names), "f:1"));
  const auto one_more = lists.expand("m", "f:2");
  ASSERT_FALSE(one_more);
  EXPECT_THAT(one_more.error().message, HasSubstr("more than 65536"));
  EXPECT_THAT(
      import_error("SwitchName=a Nodes=n[1-40000]\nSwitchName=b Nodes=m[1-40000]\nSwitchName=t Switches=a,b\n").where,
      "f:2");
}

// Four nodes of two adapters are eight below a leaf; two leaves below a row; two rows.
TEST(ImportSlurm, AnEvenTreeIsAFatTree) {
  const ClusterFile file = cluster_of({test::nccl_nvswitch, test::slurm_conf});
  EXPECT_EQ(file.topology.nodes, 16);
  ASSERT_TRUE(file.shape);
  const auto* tree = std::get_if<fabric::FatTree>(&file.shape->network);
  ASSERT_NE(tree, nullptr);
  EXPECT_THAT(tree->down, ElementsAre(8, 2, 2));
  EXPECT_THAT(tree->up, ElementsAre(1, 1));
}

// Five nodes with two adapters each: ten cables, and an uplink as wide as 3 * 2 and 2 * 2 adapters of 25 GB/s.
TEST(ImportSlurm, AnUnevenTreeIsLinkByLink) {
  const ClusterFile file = cluster_of({test::nccl_nvswitch, test::slurm_uneven});
  EXPECT_EQ(file.topology.nodes, 5);
  const auto* custom = std::get_if<fabric::Custom>(&file.shape->network);
  ASSERT_NE(custom, nullptr);
  ASSERT_EQ(custom->cables.size(), 12U);
  EXPECT_DOUBLE_EQ(custom->cables[6].link.bandwidth.value(), 150e9);
  EXPECT_DOUBLE_EQ(custom->cables[11].link.bandwidth.value(), 100e9);
}

TEST(ImportSlurm, BlocksAndYaml) {
  EXPECT_EQ(cluster_of({test::nccl_nvswitch, test::slurm_blocks}).topology.nodes, 8);
  const ClusterFile file = cluster_of({test::nccl_nvswitch, test::slurm_yaml});
  EXPECT_EQ(file.topology.nodes, 16);
  EXPECT_THAT(std::get<fabric::FatTree>(file.shape->network).down, ElementsAre(16, 2));
}

TEST(ImportSlurm, MistakesNameTheirLine) {
  EXPECT_EQ(import_error("SwitchName=a Nodes=n[1-3]\nSwitchName=b Hosts=n4\n").where, "f:2");
  EXPECT_EQ(import_error("SwitchName=a Nodes=n1\n\nNodes=n2\n").where, "f:3");
  EXPECT_EQ(import_error("- topology: t\n  tree:\n    switches:\n      - nodes: n1\n").where, "f:4");
  const auto laid = [](const char* text) {
    const auto made = cluster_text({{"n", part_of(test::nccl_nvswitch)}, {"f", part_of(text)}}, {"x", "t4", {}, {}});
    EXPECT_FALSE(made) << text;
    return made ? Error{} : made.error();
  };
  EXPECT_EQ(laid("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2\n").where, "f:2");
  EXPECT_THAT(laid("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2\n").message, HasSubstr("nothing joins them"));
  EXPECT_THAT(laid("SwitchName=a Switches=b\nSwitchName=b Switches=a\n").message, HasSubstr("ring"));
  EXPECT_THAT(laid("SwitchName=a Switches=b\n").message, HasSubstr("no switch that is listed"));
  EXPECT_THAT(laid("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n1\nSwitchName=c Switches=a,b\n").message,
              HasSubstr("second time"));
  EXPECT_THAT(laid("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\n").message, HasSubstr("listed twice"));
}

constexpr double astra_gb = 1 << 30, rounding = 1e4;  // of what is written

// Eight devices on a switch of 300 GB/s, 700 ns to it and as much from it; nodes in a torus of 4 x 2, every link as the
// slower dimension's, eight of them between two nodes. A device has two links of 50 GB/s in the ring of four, one of 25
// in that of two.
TEST(ImportAstraSim, ATorusOfNodes) {
  const ClusterFile file = cluster_of({test::astra_sim});
  EXPECT_EQ(file.topology.nodes, 8);
  EXPECT_EQ(file.topology.devices_per_node, 8);
  EXPECT_EQ(file.topology.device_link.kind, LinkKind::nvswitch);
  EXPECT_NEAR(file.topology.device_link.bandwidth.value(), 300 * astra_gb, rounding);
  EXPECT_NEAR(file.topology.device_link.latency.value(), 1.4e-6, 1e-15);
  EXPECT_THAT(std::get<fabric::Torus>(file.shape->network).dimensions, ElementsAre(4, 2));
  EXPECT_NEAR(file.shape->link.bandwidth.value(), 8 * 25 * astra_gb, rounding);
  EXPECT_NEAR(file.topology.nic_bandwidth.value(), 125 * astra_gb, rounding);
  EXPECT_EQ(file.topology.switch_latency, Seconds{});
  EXPECT_NEAR(file.shape->link.latency.value(), 1.5e-6, 1e-15);
}

// A ring has two links to its neighbours, of three fully connected devices each has two; one dimension has no adapters.
TEST(ImportAstraSim, OtherBlocks) {
  const ClusterFile ring = cluster_of({"topology: [Ring]\nnpus_count: [6]\nbandwidth: [50]\nlatency: [500]\n"});
  EXPECT_EQ(ring.topology.nodes, 6);
  EXPECT_TRUE(ring.shape->direct);
  const ClusterFile mesh = cluster_of(
      {"topology: [FullyConnected, Switch]\nnpus_count: [3, 4]\nbandwidth: [50, 25]\nlatency: [500, 500]\n"});
  EXPECT_NEAR(mesh.topology.device_link.bandwidth.value(), 100 * astra_gb, rounding);
  EXPECT_NEAR(mesh.topology.nic_bandwidth.value(), 25 * astra_gb, rounding);
  EXPECT_THAT(std::get<fabric::FatTree>(mesh.shape->network).down, ElementsAre(12));
  EXPECT_EQ(import_error("topology: [Ring]\nnpus_count: [6]\nbandwidth: [-1]\nlatency: [500]\n").where, "f:3");
  EXPECT_THAT(import_error("topology: [Torus]\nnpus_count: [6]\nbandwidth: [1]\nlatency: [5]\n").message,
              HasSubstr("Torus"));
  EXPECT_THAT(import_error("topology: [Ring, Ring]\nnpus_count: [6]\nbandwidth: [1]\nlatency: [5]\n").message,
              HasSubstr("same length"));
  EXPECT_THAT(
      import_error("topology: [Ring, Ring, Switch]\nnpus_count: [2, 2, 2]\nbandwidth: [1, 1, 1]\nlatency: [5, 5, 5]\n")
          .message,
      HasSubstr("different topologies"));
}

TEST(Import, WhatIsMissingOrSaidTwice) {
  EXPECT_THAT(import_error("hello world\n").hint, HasSubstr("NCCL"));
  const Part node = part_of(test::nccl_nvswitch);
  EXPECT_THAT(cluster_text({{"a", node}, {"b", node}}, {"x", "t4", {}, {}}).error().message, HasSubstr("both say"));
  EXPECT_THAT(cluster_text({{"a", part_of(test::slurm_conf)}}, {"x", "t4", {}, {}}).error().hint, HasSubstr("--like"));
  EXPECT_THAT(cluster_text({{"a", part_of(test::nccl_pcie)}}, {"x", "t4", 4, {}}).error().message,
              HasSubstr("adapters"));
  EXPECT_EQ(cluster_text({{"a", node}}, {"x", "", {}, {}}).error().code, ErrorCode::usage);
}

// A node of another cluster below Slurm's switches.
TEST(Import, LikeAnotherCluster) {
  Wanted wanted;
  wanted.like = parse_cluster_file(
                    "name: l\ncalibration: h100-sxm\nnodes: 2\ndevices_per_node: 8\n"
                    "device_link: {kind: nvswitch, bandwidth: 370GB/s, latency: 2us}\n"
                    "nic: {per_node: 8, bandwidth: 400Gb/s, latency: 2us}\n",
                    "l")
                    .value();
  const ClusterFile file = cluster_of({test::slurm_conf}, wanted);
  EXPECT_EQ(file.calibration, "h100-sxm");
  EXPECT_EQ(file.topology.devices_per_node, 8);
  EXPECT_THAT(std::get<fabric::FatTree>(file.shape->network).down, ElementsAre(32, 2, 2));
}

// What a cluster's file says of load and software is kept with the node; of its devices alone with its calibration, and
// of a node alone with the node.
TEST(Import, LikeKeepsLoadAndSettings) {
  Wanted wanted;
  wanted.like = parse_cluster_file(
                    "name: l\ncalibration: h100-sxm\nnodes: 2\ndevices_per_node: 8\n"
                    "device_link: {kind: nvswitch, bandwidth: 370GB/s, latency: 2us, background: 0.25}\n"
                    "nic: {per_node: 8, bandwidth: 400Gb/s, latency: 2us, background: 0.3}\n"
                    "algorithm: ring\nprotocol: LL128\n"
                    "library:\n"
                    "  - {collective: all_reduce, ranks: 16, bytes: 4KiB, algorithm: recursive_doubling}\n"
                    "  - {collective: all_to_all, bytes_each: 256B, algorithm: bruck}\n"
                    "  - {collective: all_reduce, algorithm: rabenseifner}\n"
                    "overlap: {compute_slowdown: 1.1, communication_slowdown: 1.25}\n"
                    "step_overhead_per_operation: 3us\nstorage: {bandwidth: 2GB/s}\nhost_link: {bandwidth: 40GB/s}\n",
                    "l")
                    .value();
  const ClusterFile file = cluster_of({test::slurm_conf}, wanted);
  EXPECT_DOUBLE_EQ(file.topology.device_link.background, 0.25);
  EXPECT_DOUBLE_EQ(file.topology.nic_background, 0.3);
  EXPECT_EQ(file.algorithm, Algorithm::ring);
  EXPECT_EQ(file.protocol, Protocol::ll128);
  EXPECT_EQ(file.library.library, Library::table);
  EXPECT_EQ(file.library.table, wanted.like->library.table);
  ASSERT_TRUE(file.overlap && file.step_overhead_per_operation && file.storage_read && file.host_link);
  EXPECT_DOUBLE_EQ(file.overlap->compute_slowdown, 1.1);
  EXPECT_DOUBLE_EQ(file.overlap->communication_slowdown, 1.25);
  EXPECT_DOUBLE_EQ(file.step_overhead_per_operation->value(), 3e-6);
  EXPECT_DOUBLE_EQ(file.storage_read->value(), 2e9);
  EXPECT_DOUBLE_EQ(file.host_link->value(), 4e10);

  wanted.like->library = {Library::open_mpi};
  EXPECT_EQ(cluster_of({test::slurm_conf}, wanted).library.library, Library::open_mpi);
  wanted.calibration = "a100-sxm-80gb";
  const ClusterFile other_devices = cluster_of({test::slurm_conf}, wanted);
  EXPECT_FALSE(other_devices.overlap || other_devices.step_overhead_per_operation);
  EXPECT_TRUE(other_devices.host_link.has_value());
  const ClusterFile other_node = cluster_of({test::nccl_nvswitch, test::slurm_conf}, wanted);
  EXPECT_EQ(other_node.algorithm, Algorithm::ring);
  EXPECT_EQ(other_node.topology.nic_background, 0.0) << "its adapters are those of the file";
  EXPECT_FALSE(other_node.storage_read || other_node.host_link);
}

TEST(Import, EverySampleIsKnown) {
  for (const auto& [name, text] : test::import_samples) EXPECT_TRUE(read_part(text, std::string(name))) << name;
}

}  // namespace
}  // namespace sibyl::import
