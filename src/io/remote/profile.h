#pragma once

// The files of Amazon's tools (~/.aws/config and credentials): keys, regions and endpoints that a user has set there.

#include <map>
#include <string>
#include <string_view>

namespace penstock::io::remote {

/// Sections and their entries: "[profile x]", "name = value". A line further in below "s3 =" is the entry "s3.name".
/// Lines that are neither are stepped over, and ":" is as good as "=". Names of entries are in lower case.
using Entries = std::map<std::string, std::string, std::less<>>;
using Sections = std::map<std::string, Entries, std::less<>>;
Sections read_profiles(std::string_view text);

/// The name of the profile in use, which AWS_PROFILE sets, or AWS_DEFAULT_PROFILE.
std::string profile_name();
/// Which of the files are there, or named by a variable, and could not be read, as ", the file ... cannot be read".
std::string unread_profiles();
/// What the profile in use says of `name` ("region", "endpoint_url"); empty where it says nothing. kPermission where
/// AWS_PROFILE names none that is there. The files are read again when they have changed.
std::string profile_setting(std::string_view name);
/// What the profile's `services` say of a service: ("s3", "endpoint_url"). kPermission where they are not there.
std::string service_setting(std::string_view service, std::string_view name);
/// The file of certificates to trust that Amazon's own tools take: AWS_CA_BUNDLE, or the profile's `ca_bundle`.
std::string aws_ca_bundle();

}  // namespace penstock::io::remote
