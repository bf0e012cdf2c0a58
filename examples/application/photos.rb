# The service with Active Record: each shard is one of the shards of ApplicationRecord. The verbs are those of photos.py.
#
#   ruby photos.rb sign-up NAME | post NAME CAPTION | timeline NAME | photo ID | like NAME PHOTO_ID
#                  | load SECONDS [THREADS] | hash NAME...
#
# PGBOUNCER_HOST and PGBOUNCER_PORT are PgBouncer's.

require "active_record"
require "digest"

SHARDS = 16 # never changes: names would be looked for elsewhere

# Database configuration, as config/database.yml has it. A prepared statement and an advisory lock would
# stay in one of PgBouncer's server connections.
ActiveRecord::Base.configurations = {
  "production" => (0...SHARDS).to_h do |shard|
    ["shard#{shard}", { adapter: "postgresql", host: ENV.fetch("PGBOUNCER_HOST", "/tmp"),
                        port: ENV.fetch("PGBOUNCER_PORT", "6432"), database: "shard#{shard}", pool: 8,
                        prepared_statements: false, advisory_locks: false }]
  end
}
# Rails 6.1 and 7.0 need it for connected_to(shard:); later ones do not have it.
if ActiveRecord::Base.respond_to?(:legacy_connection_handling=)
  ActiveRecord::Base.legacy_connection_handling = false
end
ENV["RAILS_ENV"] = "production"

class ApplicationRecord < ActiveRecord::Base
  self.abstract_class = true
  connects_to shards: (0...SHARDS).to_h { |shard| [:"shard#{shard}", { writing: :"shard#{shard}" }] }
end

class User < ApplicationRecord
end

class Name < ApplicationRecord
  self.primary_key = "name"
end

class Photo < ApplicationRecord
end

class Like < ApplicationRecord
end

class Outbox < ApplicationRecord
  self.table_name = "outbox"
end

# As snowflake_shard(id). Rows from before snowflake_attach() have stayed in shard 0, with numbers that hold no shard.
def shard_of_id(id)
  id < 2**53 ? 0 : (id >> 10) & 8191
end

# As ('x' || left(encode(sha256(convert_to(name, 'UTF8')), 'hex'), 16))::bit(64)::bigint.
def hash_of_name(name)
  Digest::SHA256.digest(name.encode("UTF-8")).unpack1("q>")
end

# As snowflake_shard_for(hash, shards): % of Ruby is never negative.
def shard_of_name(name, shards = SHARDS)
  hash_of_name(name) % shards
end

# Returns the result of the block, done in one transaction; again if the shard has moved: SQLSTATE 25006.
def in_transaction(shard, patience: 30, &block)
  deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + patience
  begin
    ApplicationRecord.connected_to(role: :writing, shard: :"shard#{shard}") { ApplicationRecord.transaction(&block) }
  rescue ActiveRecord::StatementInvalid => error
    raise unless error.cause.is_a?(PG::ReadOnlySqlTransaction)
    raise if Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline

    sleep 0.05
    retry
  end
end

def sign_up(name)
  in_transaction(shard_of_name(name)) do
    user = User.create!(name: name)
    Name.create!(name: name, user_id: user.id)
    user.id
  end
rescue ActiveRecord::RecordNotUnique
  abort "the name #{name} is taken"
end

def find_user(name)
  in_transaction(shard_of_name(name)) { Name.find_by(name: name) }&.user_id || abort("there is no user #{name}")
end

def post(user_id, caption)
  in_transaction(shard_of_id(user_id)) { Photo.create!(user_id: user_id, caption: caption).id }
end

# to_a: the query must run before the block ends.
def timeline(user_id, before: 2**63 - 1, limit: 20)
  in_transaction(shard_of_id(user_id)) do
    Photo.where(user_id: user_id).where("id < ?", before).order(id: :desc).limit(limit).to_a
  end
end

def photo(photo_id)
  in_transaction(shard_of_id(photo_id)) do
    found = Photo.find(photo_id)
    [found.id, found.user_id, found.caption, Like.where(photo_id: photo_id).count]
  end
end

# Active Record 6.1 has no key of two columns.
def like(user_id, photo_id)
  sql = "INSERT INTO likes (photo_id, user_id) VALUES (?, ?) ON CONFLICT DO NOTHING"
  in_transaction(shard_of_id(photo_id)) do
    made = Like.connection.update(Like.sanitize_sql([sql, photo_id, user_id]))
    Outbox.create!(user_id: user_id, photo_id: photo_id) if made == 1
  end
end

# Writes all the time, and prints each write that was acknowledged, and each request that took long: clients wait while
# an alias is paused. Looks for its newest photo, too.
def load_shards(seconds, threads)
  finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
  lock = Mutex.new
  say = ->(*words) { lock.synchronize { puts words.join(" ") } }
  request = lambda do |call, *words, **options|
    start = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    answer = send(call, *words, **options)
    waited = ((Process.clock_gettime(Process::CLOCK_MONOTONIC) - start) * 1000).round
    say.call("waited", waited, call) if waited >= 20
    answer
  end
  writers = Array.new(threads) do |number|
    Thread.new do
      users, photos = [], []
      (0..).each do |n|
        break if Process.clock_gettime(Process::CLOCK_MONOTONIC) > finish

        name = "rb#{number}_#{n}"
        if users.size < 8
          users << request.call(:sign_up, name)
          say.call("user", users.last, name)
        end
        user_id = users.sample
        photos << request.call(:post, user_id, name)
        say.call("photo", photos.last, name)
        say.call("missed", photos.last) if request.call(:timeline, user_id, limit: 1).first.id != photos.last
        photo_id, user_id = photos.sample, users.sample
        request.call(:like, user_id, photo_id)
        say.call("like", photo_id, user_id)
        sleep 0.1 # leaves the processors to others
      end
    rescue StandardError => error
      say.call("error", error.inspect)
    end
  end
  writers.each(&:join)
end

$stdout.sync = true
verb, *words = ARGV
case verb
when "sign-up" then puts sign_up(words[0])
when "post" then puts post(find_user(words[0]), words[1])
when "timeline" then timeline(find_user(words[0])).each { |row| puts "#{row.id} #{row.caption}" }
when "photo" then puts photo(words[0].to_i).join(" ")
when "like" then like(find_user(words[0]), words[1].to_i)
when "load" then load_shards(words[0].to_f, (words[1] || 4).to_i)
when "hash"
  words.each { |name| puts [name, hash_of_name(name), shard_of_name(name), shard_of_name(name, 2000)].join("\t") }
else abort "a verb is missing: see the head of photos.rb"
end
