// One TCP flow through a dumbbell in ns-3: two hosts with a router each, and a bottleneck between the routers.
//
//   dumbbell RATE_BIT_S SECONDS WINDOW_BYTES QUEUE_PACKETS
//
// Prints the bytes that arrived, the events carried out, and the data segments dropped at the bottleneck, on one line. With
// 0 seconds it builds everything and carries out nothing: what the program costs by itself. Only ns-3's public interface is
// used; nothing is traced or logged while it runs but drops.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <cstdlib>
#include <iostream>
#include <string>

using namespace ns3;

namespace
{
const uint32_t SEGMENT = 1448;
const uint16_t PORT = 5000;
uint64_t g_dropped = 0;

void
CountDrop(Ptr<const Packet>)
{
    ++g_dropped;
}

NetDeviceContainer
Link(Ptr<Node> a, Ptr<Node> b, uint64_t rate, Time delay, uint32_t packets)
{
    PointToPointHelper helper;
    helper.SetDeviceAttribute("DataRate", DataRateValue(DataRate(rate)));
    helper.SetChannelAttribute("Delay", TimeValue(delay));
    helper.SetQueue("ns3::DropTailQueue", "MaxSize", QueueSizeValue(QueueSize(QueueSizeUnit::PACKETS, packets)));
    return helper.Install(a, b);
}
} // namespace

int
main(int argc, char** argv)
{
    if (argc != 5)
    {
        std::cerr << "usage: dumbbell RATE_BIT_S SECONDS WINDOW_BYTES QUEUE_PACKETS\n";
        return 2;
    }
    const uint64_t rate = std::strtoull(argv[1], nullptr, 10);
    const double seconds = std::strtod(argv[2], nullptr);
    const uint32_t window = static_cast<uint32_t>(std::strtoul(argv[3], nullptr, 10));
    const uint32_t queue = static_cast<uint32_t>(std::strtoul(argv[4], nullptr, 10));

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpCubic::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(SEGMENT));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(window));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(window));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));

    NodeContainer nodes;
    nodes.Create(4); // sender, left, right, receiver
    const NetDeviceContainer links[] = {
        Link(nodes.Get(0), nodes.Get(1), 10000000000, MicroSeconds(100), 100000),
        Link(nodes.Get(1), nodes.Get(2), rate, MilliSeconds(10), queue),
        Link(nodes.Get(2), nodes.Get(3), 10000000000, MicroSeconds(100), 100000),
    };
    InternetStackHelper internet;
    internet.SetIpv6StackInstall(false);
    internet.Install(nodes);
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    Ipv4Address receiver;
    for (const auto& link : links)
    {
        receiver = addresses.Assign(link).GetAddress(1);
        addresses.NewNetwork();
        TrafficControlHelper().Uninstall(link); // one drop-tail queue before each link and no other
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    DynamicCast<PointToPointNetDevice>(links[1].Get(0))
        ->GetQueue()
        ->TraceConnectWithoutContext("Drop", MakeCallback(&CountDrop));

    PacketSinkHelper sinks("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), PORT));
    ApplicationContainer sink = sinks.Install(nodes.Get(3));
    BulkSendHelper senders("ns3::TcpSocketFactory", InetSocketAddress(receiver, PORT));
    senders.SetAttribute("SendSize", UintegerValue(16 * SEGMENT));
    senders.Install(nodes.Get(0));

    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    std::cout << DynamicCast<PacketSink>(sink.Get(0))->GetTotalRx() << ' ' << Simulator::GetEventCount() << ' '
              << g_dropped << std::endl;
    Simulator::Destroy();
    return 0;
}
