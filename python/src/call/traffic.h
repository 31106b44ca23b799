#pragma once

#include <nanobind/nanobind.h>

#include "penstock/report.h"

namespace penstock::python {

/// Adds what reading by URL took to figures by name, as "remote_requests" and so on.
void add_traffic(nanobind::dict figures, const RemoteTraffic& traffic);

}  // namespace penstock::python
