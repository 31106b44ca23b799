#pragma once

namespace penstock::python {

/// What a worker process does: makes the calls that come by the socket, until its other end is closed. The calling
/// thread has the GIL.
void serve_calls(int socket);

}  // namespace penstock::python
