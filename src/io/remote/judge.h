#pragma once

// The decision after each answer of a server, as a value: it is good, it is worth another try, or it is this error.
// fetch.h carries it out.

#include "io/remote/exchange.h"

namespace penstock::io::remote {

/// What to do about an answer that `accept` of the exchange does not decide: failures of the connection, refusals,
/// answers that a later try may better. It knows nothing of redirects, which fetch.cpp follows.
Verdict judge(const Exchange& exchange, const HttpRequest& request, const Answer& answer);

/// kIo where what should be a file of certificates is none: of a FIFO libcurl would wait for a writer, on the one
/// thread of all requests.
void require_certificates(const HttpRequest& request, const Settings& settings);

bool is_redirect(long status) noexcept;

/// Whether it is certain that the request was not carried out: the store says so, or was not reached.
bool is_refusal(const Answer& answer) noexcept;

}  // namespace penstock::io::remote
