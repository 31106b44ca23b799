#include <array>
#include <span>
#include <string>
#include <string_view>

#include "cli/command_line.h"
#include "core/format.h"
#include "penstock/version.h"

namespace penstock::cli {
namespace {

/// Text in roff: hyphens stay hyphens and no line begins a request.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '-') {
      out += "\\-";
    } else if (c == '\\') {
      out += "\\e";
    } else {
      out += c;
    }
  }
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

void print_option(const Option& option) {
  std::string names;
  for (const std::string& name : option.names) names += (names.empty() ? "" : ", ") + roff(name);
  if (option.is_positional()) {
    names = roff(option.type_name);
  } else if (option.takes_value()) {
    names += " " + roff(option.type_name);
  }
  const std::string fallback = option.default_text.empty() ? "" : " (default " + roff(option.default_text) + ")";
  core::print(".TP\n.B {}\n{}{}\n", names, roff(option.description), fallback);
}

void print_subcommand(const CommandLine::Subcommand& subcommand) {
  const Command& command = *subcommand.command;
  core::print(".SS {}\n{}.\n", roff(command.name), roff(command.summary));
  if (!command.description.empty()) core::print("{}\n", roff(command.description));
  for (const Option& option : subcommand.arguments.options) print_option(option);
  core::print(".PP\nExamples:\n.nf\n.RS\n");
  for (const std::string_view example : command.examples) core::print("{}\n", roff(example));
  core::print(".RE\n.fi\n");
}

struct Variable {
  std::string_view name;
  std::string_view meaning;
};

constexpr std::array kVariables = {
    Variable{"NO_COLOR", "When set and not empty, no colour is used. Colour and progress appear only on a terminal."},
    Variable{"TERM", "When dumb or not set, no colour is used, and no progress is shown."},
    Variable{"COLUMNS", "How long the lines of --help and of pictures are, in place of the terminal's width."},
    Variable{"COLORTERM", "When truecolor or 24bit, show uses 24-bit colours, else those of xterm's 256."},
    Variable{"KITTY_WINDOW_ID", "When set, show draws by kitty's protocol, as where TERM is xterm-kitty."},
    Variable{
        "TMPDIR",
        "The folder in which doctor makes a file to read when none is named, and bench --html a trace; /tmp when not "
        "set."},
    Variable{"CUDA_VISIBLE_DEVICES", "The devices that NVIDIA's driver shows, and in which order."},
    Variable{"PENSTOCK_LIBCUDA", "The NVIDIA driver's library, in place of libcuda.so.1."},
    Variable{"PENSTOCK_LIBCUBLAS",
             "The cuBLAS that multiplies matrices on devices, in place of the newest one that the driver works with; "
             "empty for none. When only PENSTOCK_LIBCUDA is set, there is none."},
    Variable{"PENSTOCK_LIBCUFILE",
             "The cuFile that reads files into devices, in place of libcufile.so.0; empty for none."},
};

/// The command has no use for these.
constexpr std::array kLibraryVariables = {
    Variable{"PENSTOCK_GDS",
             "Whether files are read into devices by cuFile (GPUDirect Storage): on, off, or auto, the default, where "
             "that is direct and the bytes are not cached."},
    Variable{
        "PENSTOCK_RING",
        "The MiB of page-locked host memory that files and tensors pass on their way to devices; 64 when not set."},
    Variable{"XDG_CACHE_HOME",
             "The folder in which lists of files that are asked for with an index are kept, in penstock; ~/.cache when "
             "not set."},
};

/// Of reading by URL (docs/remote.md).
constexpr std::array kUrlVariables = {
    Variable{"AWS_ACCESS_KEY_ID", "With AWS_SECRET_ACCESS_KEY, the keys for s3://."},
    Variable{"AWS_SECRET_ACCESS_KEY", "See AWS_ACCESS_KEY_ID."},
    Variable{"AWS_SESSION_TOKEN", "What belongs to keys that end."},
    Variable{"AWS_PROFILE",
             "The profile whose keys, region and endpoint are taken; AWS_DEFAULT_PROFILE or default when not set."},
    Variable{"AWS_SHARED_CREDENTIALS_FILE", "The file of keys, in place of ~/.aws/credentials."},
    Variable{"AWS_CONFIG_FILE", "The file of settings, in place of ~/.aws/config."},
    Variable{"AWS_ROLE_ARN", "The role that AWS_WEB_IDENTITY_TOKEN_FILE is exchanged for."},
    Variable{"AWS_WEB_IDENTITY_TOKEN_FILE", "The file of a web identity's token."},
    Variable{"AWS_ROLE_SESSION_NAME", "The name of that session; penstock when not set."},
    Variable{"AWS_ENDPOINT_URL_STS", "The service that makes this exchange."},
    Variable{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
             "Where a container asks for keys, below the host of containers."},
    Variable{"AWS_CONTAINER_CREDENTIALS_FULL_URI", "Where a container asks for keys."},
    Variable{"AWS_CONTAINER_AUTHORIZATION_TOKEN", "What a container shows when it asks."},
    Variable{"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "The file of that."},
    Variable{"AWS_EC2_METADATA_DISABLED", "When true, the metadata of the instance is not asked for keys."},
    Variable{"AWS_EC2_METADATA_SERVICE_ENDPOINT", "Where the metadata of the instance is asked for."},
    Variable{"AWS_REGION", "The region of buckets; AWS_DEFAULT_REGION, the profile's or us-east-1 when not set."},
    Variable{"AWS_DEFAULT_REGION", "See AWS_REGION."},
    Variable{"AWS_ENDPOINT_URL", "Another store than Amazon's for s3://; AWS_ENDPOINT_URL_S3 comes before it."},
    Variable{"AWS_ENDPOINT_URL_S3", "See AWS_ENDPOINT_URL."},
    Variable{"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "When true, neither those nor the profile's endpoint are taken."},
    Variable{"AWS_CA_BUNDLE", "A file of certificates to trust for s3://; SSL_CERT_FILE when not set."},
    Variable{"SSL_CERT_FILE", "A file of certificates to trust."},
    Variable{"SSL_CERT_DIR", "A folder of certificates to trust."},
    Variable{"PENSTOCK_S3_ANONYMOUS", "When 1, requests to s3:// are not signed."},
    Variable{"PENSTOCK_S3_ADDRESSING",
             "When virtual, buckets of another store than Amazon's are part of the host's name; else of the path."},
    Variable{"PENSTOCK_GS_ACCESS_KEY_ID", "With PENSTOCK_GS_SECRET_ACCESS_KEY, the HMAC keys for gs://."},
    Variable{"PENSTOCK_GS_SECRET_ACCESS_KEY", "See PENSTOCK_GS_ACCESS_KEY_ID."},
    Variable{"PENSTOCK_GS_ENDPOINT", "Another store than Google's for gs://."},
    Variable{"GOOGLE_OAUTH_ACCESS_TOKEN", "A bearer token for gs://, in place of keys."},
    Variable{"AZURE_STORAGE_ACCOUNT", "The account of az://; AZURE_STORAGE_ACCOUNT_NAME is the same."},
    Variable{"AZURE_STORAGE_KEY",
             "The account's key, which signs requests to az://; AZURE_STORAGE_ACCOUNT_KEY is the same."},
    Variable{"AZURE_STORAGE_SAS_TOKEN", "A shared access signature for az://, where there is no key."},
    Variable{"AZURE_STORAGE_TOKEN", "A bearer token for az://, where there is neither."},
    Variable{"AZURE_STORAGE_CONNECTION_STRING",
             "Account, key or signature, and endpoint of az:// in one; the variables above come before it."},
    Variable{"AZURE_STORAGE_BLOB_ENDPOINT", "Where az:// is served, in place of ACCOUNT.blob.core.windows.net."},
    Variable{"AZURE_TENANT_ID", "With AZURE_CLIENT_ID and one of the next two, the application that a token is for."},
    Variable{"AZURE_CLIENT_ID", "The application, or the managed identity where a machine has several."},
    Variable{"AZURE_CLIENT_SECRET", "The secret of the application."},
    Variable{"AZURE_FEDERATED_TOKEN_FILE", "The file of a workload identity's token."},
    Variable{"AZURE_AUTHORITY_HOST", "Who gives tokens for them; https://login.microsoftonline.com when not set."},
    Variable{"IDENTITY_ENDPOINT", "Where a container asks for a token of its managed identity."},
    Variable{"IDENTITY_HEADER", "What it shows when it asks."},
    Variable{"AZURE_POD_IDENTITY_AUTHORITY_HOST", "Where the metadata of the machine is asked for a token."},
    Variable{"PENSTOCK_AZ_ANONYMOUS", "When 1, requests to az:// say nothing of who asks."},
    Variable{"HF_TOKEN", "A bearer token for hf://; the file token in HF_HOME when not set."},
    Variable{"HF_HOME", "The folder of Hugging Face's files; ~/.cache/huggingface when not set."},
    Variable{"HF_TOKEN_PATH", "The file of the token, in place of the one in HF_HOME."},
    Variable{"HF_HUB_DISABLE_IMPLICIT_TOKEN", "When 1, the token of that file is not sent."},
    Variable{"HF_ENDPOINT", "Another host than huggingface.co for hf://."},
    Variable{"PENSTOCK_HTTP_TOKEN",
             "A bearer token for the one host that PENSTOCK_HTTP_TOKEN_HOST names; sent by https alone."},
    Variable{"PENSTOCK_HTTP_TOKEN_HOST", "HOST or HOST:PORT; see PENSTOCK_HTTP_TOKEN."},
    Variable{"PENSTOCK_REMOTE_REQUESTS",
             "The most requests at the same time; 64 when not set. Of large ones fewer, as the server takes them."},
    Variable{
        "PENSTOCK_REMOTE_TIMEOUT",
        "Seconds without a byte, or with less than 1 KiB each, after which a request has failed; 30 when not set."},
    Variable{
        "PENSTOCK_REMOTE_HEDGES",
        "Second requests for bytes whose answer is late, as a share of all answers; 0.05 when not set, 0 for none."},
    Variable{"PENSTOCK_REMOTE_RETRY_SECONDS", "How long a read tries again; 60 when not set, 0 for never."},
    Variable{"PENSTOCK_CACHE", "The folder in which bytes that were read by URL are kept; none when not set."},
    Variable{"PENSTOCK_CACHE_BYTES",
             "The most bytes of it, such as 500MB or 20 GiB; 50GB when not set. What was used longest ago goes first."},
    Variable{"PENSTOCK_CACHE_TRUST_SECONDS",
             "How long an object in it is taken for unchanged without asking the server; 0 when not set, for never."},
    Variable{"PENSTOCK_LIBCURL", "The library that makes the requests, in place of libcurl.so.4."},
};

void print_variables(std::span<const Variable> variables) {
  for (const auto& [name, meaning] : variables) {
    core::print(".TP\n.B {}\n{}\n", roff(name), roff(meaning));
  }
}

void print_environment() {
  core::print(".SH ENVIRONMENT\n");
  print_variables(kVariables);
  core::print(
      ".PP\nFiles may be URLs, which are read with these; http_proxy, https_proxy, all_proxy and no_proxy count "
      "too.\n");
  print_variables(kUrlVariables);
  core::print(".PP\nPrograms that load by the library also heed these.\n");
  print_variables(kLibraryVariables);
}

int print_man() {
  const CommandLine line;
  core::print(".TH PENSTOCK 1 \"\" \"penstock {}\" \"User Commands\"\n", PENSTOCK_VERSION_STRING);
  core::print(".SH NAME\npenstock \\- tensors from files straight to memory\n");
  core::print(".SH SYNOPSIS\n.B penstock\n.I COMMAND\n[\\fIOPTIONS\\fR] [\\fIFILE\\fR ...]\n");
  core::print(".SH DESCRIPTION\n{}\n.SH OPTIONS\n", roff(CommandLine::kDescription));
  for (const Option& option : line.arguments.options) print_option(option);
  core::print(".SH COMMANDS\nBehind \\-\\- all words are names, also those that begin with a hyphen.\n");
  for (const auto& subcommand : line.subcommands) print_subcommand(subcommand);
  core::print(
      ".SH EXIT STATUS\n.TP\n0\nDone.\n.TP\n1\nA file could not be read, or a check failed.\n"
      ".TP\n2\nWrong usage; of diff also a file that could not be read, since 1 is for files that differ.\n");
  print_environment();
  return 0;
}

}  // namespace

const Command kMan{"man",
                   "Print this manual page in roff",
                   "Read it with: penstock man | man -l -",
                   {"penstock man | man -l -", "penstock man > penstock.1", "penstock help"},
                   [](Arguments&) -> std::function<int()> { return print_man; }};

}  // namespace penstock::cli
