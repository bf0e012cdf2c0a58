# Calls the block in each shard of shards.json, or in those of the argument: rake 'shards:stamp[20 21]'.
def in_shards(only)
  JSON.parse(File.read("shards.json")).each do |shard|
    next if only && !only.split.include?(shard["shard"].to_s)

    # Only the shard's schema in the search_path: a schema_migrations of another schema is not found.
    ActiveRecord::Base.establish_connection(
      adapter: "postgresql", host: shard["host"], port: shard["port"], database: shard["dbname"],
      schema_search_path: shard["schema"], options: "-c lock_timeout=2s")
    yield
  rescue StandardError => error
    abort "shard #{shard['shard']}: #{error.message}"
  end
end

namespace :shards do
  desc "Make the migrations that a shard lacks"
  task :migrate, [:only] do |_, arguments|
    ENV["VERBOSE"] ||= "false" # else the same progress for each shard
    in_shards(arguments.only) { ActiveRecord::Tasks::DatabaseTasks.migrate }
  end

  desc "Record the migrations in clones, without making them"
  task :stamp, [:only] do |_, arguments|
    last = ENV["VERSION"] || Dir["db/migrate/*.rb"].map { |file| File.basename(file).to_i }.max
    in_shards(arguments.only) { ActiveRecord::Base.connection.assume_migrated_upto_version(last) }
  end
end
