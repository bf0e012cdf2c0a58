class CreateAlbums < ActiveRecord::Migration[6.1]
  def change
    create_table :albums, id: :bigint, default: -> { "next_id()" } do |t|
      t.text :title, null: false
    end
  end
end
