// SPDX-FileCopyrightText: the ar-tune authors
// SPDX-License-Identifier: Apache-2.0
#include "rig_schema.hpp"

#include <fstream>
#include <nlohmann/json.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

namespace artune::test {

bool fits_schema(const std::string& schema_file, const std::string& document) {
  std::ifstream stream(schema_file);
  const nlohmann::json schema_json = nlohmann::json::parse(stream);
  valijson::Schema schema;
  valijson::SchemaParser parser;
  parser.populateSchema(valijson::adapters::NlohmannJsonAdapter(schema_json), schema);
  const nlohmann::json target_json = nlohmann::json::parse(document);
  const valijson::adapters::NlohmannJsonAdapter target(target_json);
  return valijson::Validator().validate(schema, target, nullptr);
}

}  // namespace artune::test
