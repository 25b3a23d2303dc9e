// Files as NCCL, hwloc, Slurm and ASTRA-sim write them, cut down to what matters. By hand, after those programs' manuals
// and sources. Shared by the importers' tests and by the fuzzer's seeds.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace sibyl::test {

// Two sockets of two A100 each behind PCIe switches, twelve NVLinks to NVSwitch, two HDR adapters and one of 25 Gb/s.
inline constexpr std::string_view nccl_nvswitch = R"(<system version="1">
  <!-- as NCCL_TOPO_DUMP_FILE leaves it -->
  <cpu host_hash="0x1" numaid="0" affinity="0000ffff" arch="x86_64" vendor="AuthenticAMD" familyid="143" modelid="49">
    <pci busid="0000:01:00.0" class="0x060400" vendor="0x1000" device="0xc010" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:07:00.0" class="0x030200" vendor="0x10de" device="0x20b2" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="80" rank="0" gdr="1">
          <nvlink target="0000:c4:00.0" count="12" tclass="0x068000"/>
        </gpu>
      </pci>
      <pci busid="0000:08:00.0" class="0x030200" vendor="0x10de" device="0x20b2" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="1" sm="80" rank="1" gdr="1">
          <nvlink target="0000:c4:00.0" count="6" tclass="0x068000"/>
          <nvlink target="0000:c5:00.0" count="6" tclass="0x068000"/>
        </gpu>
      </pci>
      <pci busid="0000:0a:00.0" class="0x020700" vendor="0x15b3" device="0x101b" link_speed="16.0 GT/s PCIe" link_width="16">
        <nic>
          <net name="mlx5_0" dev="0" latency="0.000000" speed="200000" port="1" guid="0x1" maxconn="131072" gdr="1"/>
        </nic>
      </pci>
    </pci>
  </cpu>
  <cpu host_hash="0x1" numaid="1" affinity="ffff0000" arch="x86_64" vendor="AuthenticAMD" familyid="143" modelid="49">
    <pci busid="0000:81:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:87:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="2" sm="80" rank="2" gdr="1"><nvlink target="0000:c4:00.0" count="12" tclass="0x068000"/></gpu>
      </pci>
      <pci busid="0000:88:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="3" sm="80" rank="3" gdr="1"><nvlink target="0000:c4:00.0" count="12" tclass="0x068000"/></gpu>
      </pci>
      <pci busid="0000:8a:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16">
        <nic><net name="mlx5_1" dev="1" speed="200000" port="1" guid="0x2" maxconn="131072" gdr="1"/></nic>
      </pci>
    </pci>
    <nic><net name="eth0" dev="2" speed="25000" port="0" guid="0x3" maxconn="65536" gdr="0"/></nic>
  </cpu>
</system>
)";

// Two sockets, one PCIe 3.0 switch each with two GPUs below it, no NVLink, no adapter.
inline constexpr std::string_view nccl_pcie = R"(<system version="1">
  <cpu numaid="0" arch="x86_64"><pci busid="0000:3a:00.0" class="0x060400" link_speed="8.0 GT/s PCIe" link_width="16">
    <pci busid="0000:3b:00.0" class="0x030200" link_speed="8.0 GT/s PCIe" link_width="16"><gpu dev="0" sm="75"/></pci>
    <pci busid="0000:3c:00.0" class="0x030200" link_speed="8.0 GT/s PCIe" link_width="16"><gpu dev="1" sm="75"/></pci>
  </pci></cpu>
  <cpu numaid="1" arch="x86_64"><pci busid="0000:af:00.0" class="0x060400" link_speed="8.0 GT/s PCIe" link_width="16">
    <pci busid="0000:b0:00.0" class="0x030200" link_speed="8.0 GT/s PCIe" link_width="16"><gpu dev="2" sm="75"/></pci>
    <pci busid="0000:b1:00.0" class="0x030200" link_speed="8.0 GT/s PCIe" link_width="16"><gpu dev="3" sm="75"/></pci>
  </pci></cpu>
</system>
)";

// Two packages; two GPUs and an HDR adapter on the first host bridge, two GPUs on the second; the board's own graphics and a
// management adapter do not count.
inline constexpr std::string_view hwloc = R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
  <object type="Machine" os_index="0" cpuset="0xff" gp_index="1">
    <info name="DMIProductName" value="a &quot;box&quot;"/>
    <object type="Package" os_index="0" gp_index="2">
      <object type="NUMANode" os_index="0" local_memory="270000000000" gp_index="3"/>
      <object type="Bridge" gp_index="10" bridge_type="0-1" depth="0" bridge_pci="0000:[00-0f]">
        <object type="Bridge" gp_index="11" bridge_type="1-1" depth="1" bridge_pci="0000:[01-03]" pci_busid="0000:00:01.1" pci_type="0604 [1022:1483] [1022:1453] 00" pci_link_speed="31.507692">
          <object type="PCIDev" gp_index="12" pci_busid="0000:01:00.0" pci_type="0302 [10de:20b0] [10de:134f] a1" pci_link_speed="31.507692">
            <object type="OSDev" gp_index="13" name="cuda0" subtype="CUDA" osdev_type="5"/>
            <object type="OSDev" gp_index="14" name="nvml0" subtype="NVML" osdev_type="1"/>
          </object>
          <object type="PCIDev" gp_index="15" pci_busid="0000:02:00.0" pci_type="0302 [10de:20b0] [10de:134f] a1" pci_link_speed="31.507692"/>
        </object>
        <object type="PCIDev" gp_index="16" pci_busid="0000:03:00.0" pci_type="0207 [15b3:101b] [15b3:0007] 00" pci_link_speed="31.507692">
          <object type="OSDev" gp_index="17" name="ib0" osdev_type="2"><info name="Address" value="20:00"/></object>
          <object type="OSDev" gp_index="18" name="mlx5_0" osdev_type="3"/>
        </object>
        <object type="PCIDev" gp_index="19" pci_busid="0000:04:00.0" pci_type="0300 [1a03:2000] [1a03:2000] 41" pci_link_speed="0.250000"/>
        <object type="PCIDev" gp_index="20" pci_busid="0000:05:00.0" pci_type="0200 [8086:1533] [15d9:1533] 03" pci_link_speed="0.250000">
          <object type="OSDev" gp_index="21" name="eth0" osdev_type="2"/>
        </object>
      </object>
    </object>
    <object type="Package" os_index="1" gp_index="4">
      <object type="Bridge" gp_index="30" bridge_type="0-1" depth="0" bridge_pci="0000:[80-8f]">
        <object type="PCIDev" gp_index="31" pci_busid="0000:81:00.0" pci_type="0302 [10de:20b0] [10de:134f] a1" pci_link_speed="31.507692"/>
        <object type="PCIDev" gp_index="32" pci_busid="0000:82:00.0" pci_type="0302 [10de:20b0] [10de:134f] a1" pci_link_speed="31.507692"/>
      </object>
    </object>
  </object>
</topology>
)";

// Four leaves of four nodes below two switches below one.
inline constexpr std::string_view slurm_conf = R"(# topology.conf
SwitchName=leaf0 Nodes=gpu[00-03]
SwitchName=leaf1 Nodes=gpu[04-07] LinkSpeed=200Gb
switchname=leaf2 nodes=gpu[08-10],gpu11
SwitchName=leaf3 \
  Nodes=gpu[12-15]
SwitchName=row0 Switches=leaf[0-1]
SwitchName=row1 Switches=leaf[2-3]
SwitchName=top Switches=row[0-1]   # joins the rows
)";

// Three nodes below one leaf, two below the other: no fat tree.
inline constexpr std::string_view slurm_uneven = "SwitchName=a Nodes=n[1-3]\nSwitchName=b Nodes=n[4-5]\nSwitchName=c Switches=a,b\n";

inline constexpr std::string_view slurm_blocks = "BlockName=b1 Nodes=node[01-04]\nBlockName=b2 Nodes=node[05-08]\nBlockSizes=4,8\n";

inline constexpr std::string_view slurm_yaml = R"(---
- topology: flat
  flat: true
- topology: tree
  cluster_default: true
  tree:
    switches:
      - switch: top
        children: leaf[0-1]
      - switch: leaf0
        nodes: node[01-08]
      - switch: leaf1
        nodes: node[09-16]
)";

inline constexpr std::string_view astra_sim = R"(# Eight devices on a switch, 4 x 2 such nodes in a torus.
topology: [ Switch, Ring, Ring ]
npus_count: [ 8, 4, 2 ]
bandwidth: [ 300.0, 50.0, 25.0 ]  # GB/s
latency: [ 700.0, 1000.0, 1500.0 ]  # ns
)";

inline constexpr std::array<std::pair<std::string_view, std::string_view>, 8> import_samples{{{"nccl_nvswitch", nccl_nvswitch},
                                                                                              {"nccl_pcie", nccl_pcie},
                                                                                              {"hwloc", hwloc},
                                                                                              {"slurm_conf", slurm_conf},
                                                                                              {"slurm_uneven", slurm_uneven},
                                                                                              {"slurm_blocks", slurm_blocks},
                                                                                              {"slurm_yaml", slurm_yaml},
                                                                                              {"astra_sim", astra_sim}}};

}  // namespace sibyl::test
