// UDT4 as a peer: one end of one transfer over one stream socket, from memory to memory.
//
// `udt receive ADDRESS:PORT BYTES` says `ready` once it listens; `udt send ADDRESS:PORT BYTES` connects. At the end
// each says how many seconds it took, wall time and the processor's, from the open connection until the sender knows
// that everything is there. Receivers compare every byte, after that. UDT gets socket buffers of 4 MiB; everything else
// is its default.

#include <arpa/inet.h>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <sys/resource.h>
#include <udt/udt.h>
#include <vector>

namespace {

const int SOCKET_BUFFER = 4 << 20;
/// Bytes handed over and asked for in one call.
const int PIECE = 1 << 20;

void must(bool works, const char* what) {
    if (!works) throw std::runtime_error(std::string(what) + ": " + UDT::getlasterror().getErrorMessage());
}

/// Processor time of this process in seconds.
double processor() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) { return time.tv_sec + time.tv_usec / 1e6; };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Clock {
    std::chrono::steady_clock::time_point wall = std::chrono::steady_clock::now();
    double cpu = processor();

    void stop() const {
        const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - wall;
        std::printf("%f %f\n", elapsed.count(), processor() - cpu);
        std::fflush(stdout);
    }
};

/// Bytes that every peer sends.
std::vector<char> pattern(std::size_t bytes) {
    std::vector<char> data(bytes);
    for (std::size_t i = 0; i < bytes; i++) {
        data[i] = static_cast<char>(static_cast<std::uint32_t>(i) * 2654435761u >> 13);
    }
    return data;
}

int piece(std::size_t left) { return left < PIECE ? static_cast<int>(left) : PIECE; }

UDTSOCKET made() {
    const UDTSOCKET socket = UDT::socket(AF_INET, SOCK_STREAM, 0);
    must(socket != UDT::INVALID_SOCK, "socket");
    must(UDT::setsockopt(socket, 0, UDP_RCVBUF, &SOCKET_BUFFER, sizeof SOCKET_BUFFER) != UDT::ERROR, "buffer");
    must(UDT::setsockopt(socket, 0, UDP_SNDBUF, &SOCKET_BUFFER, sizeof SOCKET_BUFFER) != UDT::ERROR, "buffer");
    return socket;
}

void receive_all(const sockaddr* address, std::size_t bytes) {
    std::vector<char> into(bytes, 1);
    const UDTSOCKET listener = made();
    must(UDT::bind(listener, address, sizeof(sockaddr_in)) != UDT::ERROR, "bind");
    must(UDT::listen(listener, 1) != UDT::ERROR, "listen");
    std::puts("ready");
    std::fflush(stdout);
    const UDTSOCKET socket = UDT::accept(listener, nullptr, nullptr);
    must(socket != UDT::INVALID_SOCK, "accept");
    const Clock clock;
    for (std::size_t at = 0; at < bytes;) {
        const int came = UDT::recv(socket, into.data() + at, piece(bytes - at), 0);
        must(came != UDT::ERROR, "recv");
        at += came;
    }
    must(UDT::send(socket, "!", 1, 0) == 1, "send");
    clock.stop();
    char nothing;
    UDT::recv(socket, &nothing, 1, 0); // until the sender has closed
    if (into != pattern(bytes)) throw std::runtime_error("other bytes came");
}

void send_all(const sockaddr* address, std::size_t bytes) {
    const std::vector<char> data = pattern(bytes);
    const UDTSOCKET socket = made();
    must(UDT::connect(socket, address, sizeof(sockaddr_in)) != UDT::ERROR, "connect");
    const Clock clock;
    for (std::size_t at = 0; at < bytes;) {
        const int gone = UDT::send(socket, data.data() + at, piece(bytes - at), 0);
        must(gone != UDT::ERROR, "send");
        at += gone;
    }
    char all;
    must(UDT::recv(socket, &all, 1, 0) == 1, "recv");
    clock.stop();
    must(UDT::close(socket) != UDT::ERROR, "close");
}

} // namespace

int main(int count, char** words) try {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    const std::string where = count == 4 ? words[2] : "";
    const std::size_t colon = where.find(':');
    if (colon == std::string::npos || inet_pton(AF_INET, where.substr(0, colon).c_str(), &address.sin_addr) != 1) {
        throw std::runtime_error("usage: udt receive|send ADDRESS:PORT BYTES");
    }
    address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(where.substr(colon + 1))));
    UDT::startup();
    const bool receives = std::strcmp(words[1], "receive") == 0;
    const auto end = receives ? receive_all : send_all;
    end(reinterpret_cast<const sockaddr*>(&address), std::stoul(words[3]));
    UDT::cleanup();
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
