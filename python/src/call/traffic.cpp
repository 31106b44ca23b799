#include "call/traffic.h"

#include "interpreter/nanobind.h"

namespace penstock::python {

void add_traffic(nb::dict figures, const RemoteTraffic& traffic) {
  figures["remote_requests"] = traffic.requests;
  figures["remote_retries"] = traffic.retries;
  figures["remote_hedges"] = traffic.hedges;
  figures["remote_throttled"] = traffic.throttled;
  figures["remote_received_bytes"] = traffic.received_bytes;
  figures["remote_cached_bytes"] = traffic.cached_bytes;
  figures["remote_first_byte_seconds"] = traffic.first_byte_seconds;
  figures["remote_transfer_seconds"] = traffic.transfer_seconds;
  figures["remote_paused_seconds"] = traffic.paused_seconds;
  figures["remote_limit"] = nb::str(traffic.limit().data(), traffic.limit().size());
}

}  // namespace penstock::python
