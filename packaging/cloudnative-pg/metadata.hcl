# For a folder "snowflake" in cloudnative-pg/postgres-extensions-containers, when apt.postgresql.org has the packages: its
# Dockerfile then installs postgresql-18-snowflake in place of building it. Empty paths are the operator's own: share and lib.
metadata = {
  name                     = "snowflake"
  sql_name                 = "snowflake"
  image_name               = "snowflake"
  licenses                 = ["PostgreSQL"]
  shared_preload_libraries = []
  postgresql_parameters    = {}
  extension_control_path   = []
  dynamic_library_path     = []
  ld_library_path          = []
  bin_path                 = []
  env                      = {}
  auto_update_os_libs      = false
  required_extensions      = []
  create_extension         = true

  versions = {
    bookworm = {
      "18" = {
        // renovate: suite=bookworm-pgdg depName=postgresql-18-snowflake
        package = "1.2.0-1.pgdg12+1"
        // renovate: suite=bookworm-pgdg depName=postgresql-18-snowflake extractVersion=^(?<version>\d+\.\d+)
        sql     = "1.2"
      }
    }
    trixie = {
      "18" = {
        // renovate: suite=trixie-pgdg depName=postgresql-18-snowflake
        package = "1.2.0-1.pgdg13+1"
        // renovate: suite=trixie-pgdg depName=postgresql-18-snowflake extractVersion=^(?<version>\d+\.\d+)
        sql     = "1.2"
      }
    }
  }
}
