class IndexPhotos < ActiveRecord::Migration[6.1]
  disable_ddl_transaction!

  def change
    add_index :photos, :user_id, name: :photos_user, algorithm: :concurrently
  end
end
